/** This PDP beside the reference, in the worlds that `npm run differential` also shows to a real OpenFGA server. */
import { expect, test } from 'vitest'
import { effort } from '../support/effort.ts'
import { compareCheck, compareList, createJudge } from './judge.ts'
import { openOurs } from './ours.ts'
import { randomWorld } from './worlds.ts'

test('checks and both lists are right for every subject, however the relations lean on each other', async () => {
  const wrong: unknown[] = []
  let [allows, denials] = [0, 0]
  for (let seed = 1_000_000; seed < 1_000_000 + effort({ short: 30, long: 300 }); seed++) {
    const world = randomWorld(seed)
    const ours = await openOurs(world)
    if ('refused' in ours) continue
    const judge = createJudge(world)
    const said = await ours.checks(world.checks)
    for (const [i, asked] of world.checks.entries()) {
      const right = judge.check(asked)
      if (right === true) allows++
      else denials++
      if (compareCheck(right, said[i] ?? { error: 'none' }) !== 'right')
        wrong.push({ seed, asked, right, said: said[i] })
    }
    for (const asked of world.objectLists) {
      const [right, found] = [judge.objects(asked), await ours.listObjects(asked)]
      if (compareList(right, found) !== 'right') wrong.push({ seed, asked, right, found })
    }
    for (const asked of world.userLists) {
      const [right, found] = [judge.users(asked), await ours.listUsers(asked)]
      if (compareList(right, found) !== 'right') wrong.push({ seed, asked, right, found })
    }
  }
  expect(wrong).toEqual([])
  expect(Math.min(allows, denials)).toBeGreaterThan(effort({ short: 50, long: 200 }))
})
