/** Relations that a change of the model cannot touch are told from the models alone; random worlds say whether that is so. */
import { describe, expect, test } from 'vitest'
import { knownModel } from '../../../../../pdp/engine/decide/models/known-models.ts'
import { hasSameAnswers } from '../../../../../pdp/engine/decide/models/same-answers.ts'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { randomWorld, type World } from '../../../../differential/worlds.ts'
import { effort } from '../../../../support/effort.ts'
import { given, organization } from '../../../../support/tuples.ts'

const model = (...lines: readonly string[]): ReturnType<typeof knownModel> =>
  knownModel(`model\n  schema 1.1\ntype user\n${lines.join('\n')}\n`)
const same = (before: readonly string[], after: readonly string[], relation: string, type = 'doc'): boolean =>
  hasSameAnswers(model(...before), model(...after), { type, relation })
const DOC = ['type doc', '  relations']
const FOLDER = (viewer: string): readonly string[] => ['type folder', '  relations', `    define viewer: ${viewer}`]
const PARENT = '    define parent: [folder]'

describe('a relation has the same answers', () => {
  const before = [
    ...DOC,
    '    define editor: [user]',
    '    define viewer: [user] or editor',
    '    define owner: [user]',
  ]
  test('when only another one changes, and not when one that it leads to does', () => {
    const after = [...DOC, '    define editor: [user, user:*]', ...before.slice(3)]
    expect(['editor', 'viewer', 'owner'].map((relation) => same(before, after, relation))).toEqual([false, false, true])
  })

  test('through parents and usersets, and not when those change', () => {
    const docs = [...DOC, PARENT, '    define viewer: viewer from parent', '    define named: [folder#viewer]']
    for (const relation of ['viewer', 'named']) {
      expect(same([...docs, ...FOLDER('[user]')], [...docs, ...FOLDER('[user]')], relation)).toBe(true)
      expect(same([...docs, ...FOLDER('[user]')], [...docs, ...FOLDER('[user, user:*]')], relation)).toBe(false)
    }
  })

  test.each([
    ['a type that one of them does not have', [...DOC, '    define viewer: [user]'], []],
    ['a relation that one of them does not have', before, [...DOC, '    define owner: [user]']],
    ['groups that one of them models', before, [...before, 'type group', '  relations', '    define member: [user]']],
  ])('is not said of %s', (_, one, other) => {
    expect([same(one, other, 'viewer'), same(other, one, 'viewer')]).toEqual([false, false])
  })

  test('is not said where tuples of a type without a model may lead anywhere', () => {
    const file = [...DOC, '    define viewer: [user]', '    define other: [user]']
    expect(same(file, file, 'viewer', 'page')).toBe(false)
  })

  test('is said of a relation that neither model has, since nobody has it', () => {
    expect(same(before, [...DOC, '    define owner: [user]'], 'nobody')).toBe(true)
  })

  test('when conditions are the same, and not when one reads otherwise', () => {
    const condition = (rule: string) => [
      ...DOC,
      '    define viewer: [user with small]',
      `condition small(size: int) {\n  ${rule}\n}`,
    ]
    expect(same(condition('size < 3'), condition('size < 3'), 'viewer')).toBe(true)
    expect(same(condition('size < 3'), condition('size < 4'), 'viewer')).toBe(false)
  })
})

/** Every answer about the type and relation, errors by their code. */
async function answersOf(world: World, text: string): Promise<ReadonlyMap<string, string>> {
  const store = memoryStore()
  const manifest = { app: 'a', audiences: [], permissions: {}, roles: {}, model: text }
  const changes = world.tuples.map((tuple) => ({ kind: 'tuple' as const, op: 'write' as const, tuple }))
  await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
  await given(store, 'acme', ...changes)
  const pdp = createPdp({ store })
  const answers = new Map<string, string>()
  const checks = PLACES.flatMap(({ type, relation }) => [0, 1, 2].map((i) => ({ relation, resource: `${type}:${i}` })))
  for (const [type, id] of [
    ['user', 'a'],
    ['user', 'b'],
    ['robot', 'a'],
  ] as const) {
    const { permissions } = await pdp.decide({ organization: 'acme', subject: { type, id }, permissions: checks })
    for (const { relation, resource, allowed, error } of permissions)
      answers.set(`${type}:${id} ${relation} ${resource}`, error ?? String(allowed))
  }
  return answers
}

const PLACES = ['team', 'folder', 'doc'].flatMap((type) =>
  ['r0', 'r1', 'r2', 'r3'].map((relation) => ({ type, relation })),
)

/** With the definition of one relation taken from another world; null: the two do not fit together. */
function changed(model: string, other: string, at: number): string | null {
  const lines = model.split('\n')
  const defined = lines.flatMap((line, i) => (/^ {4}define r/.test(line) ? [i] : []))
  const others = other.split('\n').filter((line) => /^ {4}define r/.test(line))
  lines[defined[at] ?? 0] = others[at] ?? ''
  const text = lines.join('\n')
  try {
    knownModel(text)
    return text
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}

test('in random worlds, in which one definition changes, no relation has another answer that was said to have the same', async () => {
  const seen = { same: 0, other: 0, differing: 0 }
  for (let seed = 1; seed <= effort({ short: 60, long: 120 }); seed += 1) {
    const world = randomWorld(seed)
    const after = changed(world.model, randomWorld(seed + 1_000).model, seed % 12)
    if (after === null || after === world.model) continue
    const [was, is] = [await answersOf(world, world.model), await answersOf(world, after)]
    for (const place of PLACES) {
      const isSaid = hasSameAnswers(knownModel(world.model), knownModel(after), place)
      const about = [...was.keys()].filter((key) => key.includes(` ${place.relation} ${place.type}:`))
      const differing = about.filter((key) => was.get(key) !== is.get(key))
      if (isSaid) expect([seed, place, differing]).toEqual([seed, place, []])
      seen[isSaid ? 'same' : 'other'] += 1
      if (differing.length > 0) seen.differing += 1
    }
  }
  // The test would say nothing if one of these were rare.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(effort({ short: 8, long: 20 }))
})
