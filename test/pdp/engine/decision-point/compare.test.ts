/** Who would gain and who would lose: exactly the difference of two lists, and nothing is written. */
import { describe, expect, test, vi } from 'vitest'
import type { Comparison } from '../../../../pdp/engine/decision-point/compare-shapes.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, organization, put, tuple } from '../../../support/tuples.ts'

const model = (viewer: string): string =>
  `model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define editor: [user]\n    define viewer: ${viewer}\n`
const QUESTION = { organization: 'acme', relation: 'viewer', type: 'doc' }

async function pdpWithDocs(cached: boolean): Promise<EmbeddedPdp> {
  const store = cached ? remoteMemoryStore() : memoryStore()
  const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model: model('[user] or editor') }
  await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
  await given(store, 'acme', put('doc:1#viewer@user:ann'), put('doc:1#editor@user:bob'), put('doc:2#editor@user:ann'))
  return createPdp({ store })
}

describe.each([false, true])('with a cache: %s', (cached) => {
  test('a model that takes a rule away names everybody who loses by it', async () => {
    const pdp = await pdpWithDocs(cached)
    const found = await pdp.compare({ ...QUESTION, model: { app: 'docs', text: model('[user]') } })
    expect(found.gains).toEqual([])
    expect(found.loses).toEqual([
      { subject: 'user:bob', resource: 'doc:1' },
      { subject: 'user:ann', resource: 'doc:2' },
    ])
    expect(found).toMatchObject({ gainsCount: 0, losesCount: 2, complete: true })
    expect(await pdp.can('acme', { type: 'user', id: 'bob' }, 'viewer', 'doc:1')).toBe(true)
  })

  test('tuples that come and go are counted like a model', async () => {
    const pdp = await pdpWithDocs(cached)
    const found = await pdp.compare({
      ...QUESTION,
      contextualTuples: [tuple('doc:3#editor@user:zoe')],
      withoutTuples: [tuple('doc:1#editor@user:bob')],
    })
    expect(found.gains).toEqual([{ subject: 'user:zoe', resource: 'doc:3' }])
    expect(found.loses).toEqual([{ subject: 'user:bob', resource: 'doc:1' }])
  })

  test('several relations are compared in their order, in one snapshot', async () => {
    const pdp = await pdpWithDocs(cached)
    const { relation: _, ...all } = QUESTION
    const [editor, viewer] = await pdp.compareAll({
      ...all,
      relations: ['editor', 'viewer'],
      model: { app: 'docs', text: model('[user]') },
    })
    expect([editor?.losesCount, viewer?.losesCount]).toEqual([0, 2])
  })

  test('nothing changes when nothing is supposed', async () => {
    expect(await (await pdpWithDocs(cached)).compare(QUESTION)).toMatchObject({ gainsCount: 0, losesCount: 0 })
  })
})

describe('among more resources than are compared', () => {
  const docs = Array.from({ length: 250 }, (_, i) => `doc:${String(i).padStart(3, '0')}`)
  const open = async (subject: string): Promise<EmbeddedPdp> => {
    const store = memoryStore()
    const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model: model('[user, group#member]') }
    await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
    for (let at = 0; at < docs.length; at += 50)
      await given(store, 'acme', ...docs.slice(at, at + 50).map((doc) => put(`${doc}#viewer@${subject}`)))
    await given(store, 'acme', put('group:all#member@user:ann'), put('doc:zz#viewer@group:one#member'))
    await given(store, 'acme', put('group:one#member@user:bob'))
    return createPdp({ store })
  }

  test('one that a tuple touches is compared, wherever it stands, and that is everything', async () => {
    const withoutTuples = [tuple('doc:249#viewer@user:ann')]
    const found = await (await open('user:ann')).compare({ ...QUESTION, withoutTuples })
    expect(found).toMatchObject({ losesCount: 1, complete: true, resourcesCompared: 1, resourcesCount: 1 })
  })

  test('those behind a group are found, where there are few', async () => {
    const found = await (await open('user:ann')).compare({
      ...QUESTION,
      withoutTuples: [tuple('group:one#member@user:bob')],
    })
    expect(found.loses).toEqual([{ subject: 'user:bob', resource: 'doc:zz' }])
    expect(found).toMatchObject({ complete: true, resourcesCount: 1 })
  })

  test('a group of all of them, and a model, are compared on every one', async () => {
    const pdp = await open('group:all#member')
    const withoutTuples = [tuple('group:all#member@user:ann')]
    expect(await pdp.compare({ ...QUESTION, withoutTuples })).toMatchObject({
      ...{ losesCount: 250, complete: true, resourcesCompared: 250, resourcesCount: 250, next: null },
    })
    const found = await pdp.compare({ ...QUESTION, model: { app: 'docs', text: model('[user]') } })
    expect(found).toMatchObject({ losesCount: 251, complete: true, resourcesCompared: 251, resourcesCount: 251 })
    expect(found.loses).toHaveLength(100)
  })

  test('when the time is over it says where to go on, and the parts are the whole', async () => {
    const pdp = await open('group:all#member')
    const asked = { ...QUESTION, model: { app: 'docs', text: model('[user]') } }
    // Each look at the clock is a second later.
    let nowMs = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 1_000))
    const parts: Comparison[] = []
    try {
      do {
        const after = parts.at(-1)?.next
        parts.push(await pdp.compare({ ...asked, ...(after != null && { after }) }))
      } while (parts.at(-1)?.next !== null)
    } finally {
      clock.mockRestore()
    }
    expect(parts.length).toBeGreaterThan(50)
    expect(parts[0]).toMatchObject({ complete: false, decided: true, resourcesCount: 251 })
    expect(parts.reduce((sum, part) => sum + part.resourcesCompared, 0)).toBe(251)
    const named = parts.flatMap(({ loses }) => loses.map(({ resource }) => resource))
    expect(named).toEqual([...docs, 'doc:zz'])
  })

  test('a resource that a supposed tuple alone names has its place among the others', async () => {
    const pdp = await open('user:ann')
    const names = ['doc:0000', 'doc:1005', 'doc:zzz']
    const found = await pdp.compare({
      ...QUESTION,
      contextualTuples: [...names.map((name) => tuple(`${name}#viewer@user:new`)), tuple('group:one#member@user:new')],
    })
    expect(found.gains.map(({ resource }) => resource)).toEqual(['doc:0000', 'doc:1005', 'doc:zz', 'doc:zzz'])
  })
})

test('all subjects of a resource are compared, over several pages of them', async () => {
  const store = memoryStore()
  await given(store, ENVIRONMENT, organization('acme'))
  const users = Array.from({ length: 1_200 }, (_, i) => `user:u${String(i).padStart(4, '0')}`)
  for (let at = 0; at < users.length; at += 100)
    await given(store, 'acme', ...users.slice(at, at + 100).map((name) => put(`doc:1#viewer@${name}`)))
  const withoutTuples = [tuple('doc:1#viewer@user:u0007'), tuple('doc:1#viewer@user:u1107')]
  const found = await createPdp({ store }).compare({ ...QUESTION, withoutTuples })
  const loses = ['user:u0007', 'user:u1107'].map((subject) => ({ subject, resource: 'doc:1' }))
  expect(found).toMatchObject({ gains: [], loses, complete: true })
})

test.each([
  ['a text that is no model', { model: { app: 'docs', text: 'type' } }, /line|:/],
  ['no type', { type: 'a b' }, /type/],
  ['a place of another type', { after: 'folder:1' }, /after/],
  ['no tuple', { withoutTuples: [{ object: 'x', relation: 'y', subject: 'z' }] }, /withoutTuples/],
])('it refuses %s', async (_, wrong, place) => {
  const asked = (await pdpWithDocs(false)).compare({ ...QUESTION, ...wrong })
  await expect(asked).rejects.toMatchObject({ code: 'request_invalid', message: expect.stringMatching(place) })
})
