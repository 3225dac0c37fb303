/** Lists of subjects where the resource has few of very many. */
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { subjectsFromResource } from '../../../../pdp/engine/decide/lists/from-resource.ts'
import { NO_MODEL } from '../../../../pdp/engine/decide/model.ts'
import { relationViewOf } from '../../../../pdp/engine/decide/views/contextual-tuples.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { createJudge } from '../../../differential/judge.ts'
import { randomWorld } from '../../../differential/worlds.ts'
import { effort } from '../../../support/effort.ts'
import { given, put } from '../../../support/tuples.ts'

const compiled = (text: string) => {
  try {
    return compileModel(text)
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}

test('in random models the resource’s side leaves out no subject that the reference allows', async () => {
  let [found, untold] = [0, 0]
  for (let seed = 1; seed <= effort({ short: 120, long: 600 }); seed++) {
    const world = randomWorld(seed)
    const model = compiled(world.model)
    if (model === null) continue
    const store = memoryStore()
    await given(store, 'o', ...world.tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const))
    const [judge, view] = [createJudge(world), store.currentView()]
    for (const question of world.checks) {
      const { subject, relation, object: resource, contextual } = question
      if (subject.includes('#') || subject.endsWith(':*') || judge.check(question) !== true) continue
      const shown = relationViewOf(view, model, 'o', contextual) ?? view
      const type = subject.slice(0, subject.indexOf(':'))
      const subjects = subjectsFromResource(shown, model, { organization: 'o', resource, relation, type })
      if (subjects === null) {
        untold++
        continue
      }
      expect([seed, resource, relation, subjects]).toEqual([
        seed,
        resource,
        relation,
        expect.arrayContaining([subject]),
      ])
      found++
    }
  }
  expect(found).toBeGreaterThan(60)
  // Wildcards tell nothing.
  expect(untold).toBeGreaterThan(0)
})

describe('the resource’s side without a model', () => {
  const subjects = async (resource: string, type = 'user') => {
    const store = memoryStore()
    await given(store, 'o', put('doc:1#viewer@group:a#member'), put('group:a#member@group:b#member'))
    await given(store, 'o', put('group:b#member@user:ann'), put('group:b#member@group:a#member'))
    await given(store, 'o', put('doc:2#viewer@organization:o#member'), put('doc:3#viewer@user:*'))
    await given(store, 'o', put('doc:4#viewer@service:bot'), put('doc:4#viewer@folder:x#owner'))
    await given(store, 'o', put('folder:x#owner@user:zoe'))
    const asked = { organization: 'o', resource, relation: 'viewer', type }
    return subjectsFromResource(store.currentView(), NO_MODEL, asked)
  }
  test.each([
    ['doc:1', 'user', ['user:ann']],
    ['doc:4', 'user', ['user:zoe']],
    ['doc:4', 'service', ['service:bot']],
    ['doc:9', 'user', []],
    ['doc:3', 'service', []],
  ])('of %s finds each %s through groups in a circle and usersets', async (resource, type, expected) => {
    expect(await subjects(resource, type)).toEqual(expected)
  })
  test.each(['doc:2', 'doc:3', 'organization:o'])('of %s does not tell', async (resource) => {
    expect(await subjects(resource)).toBeNull()
  })
})
