/** Lists of resources where the subject holds few of very many. */
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { resourcesFromSubject } from '../../../../pdp/engine/decide/lists/from-subject.ts'
import type { Model } from '../../../../pdp/engine/decide/model.ts'
import type { Steps } from '../../../../pdp/engine/decide/slices.ts'
import { relationViewOf } from '../../../../pdp/engine/decide/views/contextual-tuples.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { readSubject } from '../../../../pdp/server/console/question.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import type { ListPage, ListResourcesRequest } from '../../../../pdp/shared/domain/decision.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { createJudge } from '../../../differential/judge.ts'
import { randomWorld } from '../../../differential/worlds.ts'
import { effort } from '../../../support/effort.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, member, put, tuple } from '../../../support/tuples.ts'

test('in random models the subject’s side leaves out no resource that the reference allows', async () => {
  let found = 0
  for (let seed = 1; seed <= effort({ short: 30, long: 300 }); seed++) {
    const world = randomWorld(seed)
    const model = compiled(world.model)
    if (model === null) continue
    const store = memoryStore()
    await given(store, 'o', ...world.tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const))
    const [judge, view] = [createJudge(world), store.currentView()]
    for (const question of world.checks) {
      const { subject, relation, object, contextual } = question
      if (judge.check(question) !== true) continue
      const type = object.slice(0, object.indexOf(':'))
      const shown = relationViewOf(view, model, 'o', contextual) ?? view
      const asked = readSubject(subject)
      if (asked === null) throw new Error(subject)
      const steps = resourcesFromSubject(shown, model, { organization: 'o', subject: asked, relation, type })
      const resources = whole(steps)
      if (resources === null) continue
      expect([seed, subject, relation, resources]).toEqual([seed, subject, relation, expect.arrayContaining([object])])
      found++
    }
  }
  expect(found).toBeGreaterThan(100)
})

const MODEL = `model
  schema 1.1
type user
type folder
  relations
    define viewer: [user, user:*, group#member]
type doc
  relations
    define parent: [folder]
    define banned: [user]
    define viewer: [user, user with at_work, group#member, organization#member] or viewer from parent
    define reader: viewer but not banned
    define everybody: [user:*]
condition at_work(hour: int) {
  hour > 8
}
`
/** More than one page examines. */
const MANY = 2_600

describe.each([
  ['memory', (): Store => memoryStore()],
  ['the cache', (): Store => remoteMemoryStore()],
])('of very many resources with %s', (_, open) => {
  const many = (make: (i: number) => string): Change[] => Array.from({ length: MANY }, (_, i) => put(make(i)))
  const opened = async (...changes: Change[]) => {
    const store = open()
    const manifest = { app: 'a', audiences: [], permissions: {}, roles: {}, model: MODEL }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    await given(store, 'acme', ...many((i) => `doc:n${i}#viewer@user:other`), ...changes)
    const pdp = createPdp({ store })
    const asked = { organization: 'acme', subject: user('ann'), relation: 'viewer', type: 'doc', pageSize: 100 }
    return { pdp, list: (more: Partial<ListResourcesRequest> = {}) => pdp.listResources({ ...asked, ...more }) }
  }

  test.each<[string, readonly string[]]>([
    ['a tuple', ['doc:z#viewer@user:ann']],
    ['a group in a group', ['doc:z#viewer@group:g#member', 'group:g#member@group:h#member', 'group:h#member@user:ann']],
    ['a parent', ['doc:z#parent@folder:f', 'folder:f#viewer@user:ann']],
    ['everybody of a parent', ['doc:z#parent@folder:f', 'folder:f#viewer@user:*']],
    ['a membership', ['doc:z#viewer@organization:acme#member']],
  ])('the first page has the few that are held by %s', async (_, texts) => {
    const { list } = await opened(member('ann', 'member'), ...texts.map((text) => put(text)))
    expect(await list()).toMatchObject({ items: ['doc:z'], nextPageToken: null, complete: true })
    expect((await list({ subject: user('zoe') })).items).toEqual(texts.some((t) => t.includes('*')) ? ['doc:z'] : [])
  })

  test('what a rule takes away is not in the list', async () => {
    const { list } = await opened(
      put('doc:y#viewer@user:ann'),
      put('doc:z#viewer@user:ann'),
      put('doc:z#banned@user:ann'),
    )
    expect(await list({ relation: 'reader' })).toMatchObject({ items: ['doc:y'], nextPageToken: null })
  })

  test('a condition without its context leaves its resource undecided, and the list says so', async () => {
    const condition = { name: 'at_work', context: {} }
    const { list } = await opened({
      kind: 'tuple',
      op: 'write',
      tuple: { ...tuple('doc:z#viewer@user:ann'), condition },
    })
    expect(await list()).toMatchObject({ items: [], complete: false, undecided: [{ item: 'doc:z' }] })
    expect(await list({ context: { hour: 9 } })).toMatchObject({ items: ['doc:z'], complete: true })
    expect(await list({ context: { hour: 7 } })).toMatchObject({ items: [], complete: true })
  })

  test('contextual tuples lead to resources, and those that are supposed away do not', async () => {
    const { list } = await opened(put('doc:y#viewer@user:ann'), put('doc:z#parent@folder:f'))
    const contextualTuples = [{ object: 'folder:f', relation: 'viewer', subject: 'user:ann' }]
    expect((await list({ contextualTuples })).items).toEqual(['doc:y', 'doc:z'])
    const withoutTuples = [{ object: 'doc:y', relation: 'viewer', subject: 'user:ann' }]
    expect((await list({ withoutTuples })).items).toEqual([])
  })

  test('pages of 1 give each resource once, in order', async () => {
    const { list } = await opened(...['x', 'y', 'z'].map((id) => put(`doc:${id}#viewer@user:ann`)))
    const items: string[] = []
    for (let pageToken: string | null = null, pages = 0; pages < 10; pages++) {
      const page: ListPage = await list({ pageSize: 1, ...(pageToken !== null && { pageToken }) })
      items.push(...page.items)
      pageToken = page.nextPageToken
      if (pageToken === null) break
    }
    expect(items).toEqual(['doc:x', 'doc:y', 'doc:z'])
  })

  test('a relation that no model knows, and who holds too much, are listed page by page as ever', async () => {
    const { list } = await opened(put('thing:z#viewer@user:ann'), ...many((i) => `doc:p${i}#everybody@user:*`))
    expect((await list({ type: 'thing' })).items).toEqual(['thing:z'])
    expect((await list({ relation: 'everybody' })).nextPageToken).not.toBeNull()
  })
})

function whole<T>(steps: Steps<T>): Exclude<T, undefined> {
  for (;;) {
    const { done, value } = steps.next()
    if (done !== true) continue
    if (value === undefined) throw new Error('rows are missing')
    return value as Exclude<T, undefined>
  }
}

function compiled(text: string): Model | null {
  try {
    return compileModel(text)
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}
