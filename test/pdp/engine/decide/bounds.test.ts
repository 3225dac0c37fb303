/** The bounds of evaluation, at the bound and one past it. Past it there is an error, never an answer. */
import { beforeEach, describe, expect, test } from 'vitest'
import { TUPLES_PER_CHECK_MAX } from '../../../../pdp/engine/decide/search/search.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, grant, member, put } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type folder
  relations
    define parent: [folder]
    define viewer: [user] or viewer from parent
`
const limit = { code: 'evaluation_limit' }
const times = (count: number, make: (i: number) => Change): Change[] => Array.from({ length: count }, (_, i) => make(i))
/** A check of it visits 10,000 tuples: itself, its 5 parts, twice, 4,994 teams of theirs, twice, and `groups` groups: 1. */
const wide = (doc: string, groups: number): Change[] => [
  ...times(5, (i) => put(`${doc}#viewer@part:${doc}/${i}#viewer`)),
  ...times(4_994, (i) => put(`part:${doc}/${i % 5}#viewer@team:${i}#lead`)),
  ...times(groups, (i) => put(`${doc}#viewer@group:${i}#member`)),
]

describe.each([
  ['memory', memoryStore],
  ['the cache', remoteMemoryStore],
])('with %s', (_, open) => {
  let store: Store
  let pdp: Pdp
  beforeEach(async () => {
    store = open()
    pdp = createPdp({ store, tuplesPerCheckMax: 10_000 })
    const manifest = { app: 'files', audiences: [], permissions: {}, roles: {}, model: MODEL }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    await given(store, 'acme')
  })
  const can = (resource: string, relation = 'viewer') => pdp.can('acme', user('ann'), relation, resource)
  const ask = async (...resources: string[]) => {
    const permissions = resources.map((resource) => ({ relation: 'viewer', resource }))
    return (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions })).permissions
  }

  test('as many tuples are visited for one check as were said, and not one more', async () => {
    await given(store, 'acme', ...wide('doc:at', 1), ...wide('doc:past', 2))
    expect(await can('doc:at')).toBe(false)
    await expect(can('doc:past')).rejects.toMatchObject(limit)
    expect(await ask('doc:past', 'doc:at')).toMatchObject([
      { allowed: false, error: 'evaluation_limit' },
      { allowed: false, reasonCode: 'none' },
    ])
  })

  test('an allow that is found before the bound stands', async () => {
    await given(store, 'acme', ...wide('doc:past', 2), put('doc:past#viewer@user:ann'))
    expect(await can('doc:past')).toBe(true)
  })

  test('beyond the bound a role still allows, and who is suspended is denied', async () => {
    const askOwn = async () => {
      const permissions = [{ relation: 'pay', resource: 'organization:acme' }]
      return (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions })).permissions[0]
    }
    await given(store, ENVIRONMENT, {
      kind: 'role',
      key: 'payer',
      role: { key: 'payer', name: 'P', permissions: ['pay'] },
    })
    await given(store, 'acme', ...wide('doc:past', 2), put('organization:acme#pay@doc:past#viewer'))
    expect(await askOwn()).toMatchObject({ allowed: false, error: 'evaluation_limit' })
    await given(store, 'acme', grant('g1', 'payer', 'user:ann'))
    expect(await askOwn()).toMatchObject({ allowed: true, reasonCode: 'role' })
    await given(store, 'acme', member('ann', 'member', 'suspended'))
    expect(await askOwn()).toMatchObject({ allowed: false, reasonCode: 'membership_suspended' })
  })

  test('100,000 tuples are visited for one request, and 100,001 are not', async () => {
    await given(store, 'acme', ...wide('doc:at', 1), put('doc:own#viewer@user:ann'))
    const full = Array<string>(9).fill('doc:at')
    const at = await ask(...full, 'doc:at')
    expect(at.map((p) => p.error)).toEqual(Array(10).fill(undefined))
    const past = await ask(...full, 'doc:at', 'doc:own', 'doc:own')
    expect(past.slice(0, 10).map((p) => p.error)).toEqual(Array(10).fill(undefined))
    expect(past.slice(10)).toMatchObject(Array(2).fill({ allowed: false, error: 'evaluation_limit' }))
  })

  test('checks that reach their own bound count towards that of the request', async () => {
    await given(store, 'acme', ...wide('doc:past', 2), put('doc:own#viewer@user:ann'))
    const answers = await ask(...Array<string>(9).fill('doc:past'), 'doc:own', 'doc:past', 'doc:own')
    expect(answers[9]).toMatchObject({ allowed: true })
    expect(answers[11]).toMatchObject({ allowed: false, error: 'evaluation_limit' })
  })

  test('100,000 tuples are visited for one check where nothing else was said', async () => {
    await given(store, 'acme', ...wide('doc:past', 2))
    expect(await createPdp({ store }).can('acme', user('ann'), 'viewer', 'doc:past')).toBe(false)
    expect(TUPLES_PER_CHECK_MAX).toBe(100_000)
  })

  test.each([0, -1, 1.5, Number.NaN])('%d tuples for one check are no bound', (tuplesPerCheckMax) => {
    expect(() => createPdp({ store, tuplesPerCheckMax })).toThrow(TypeError)
  })

  test('1,000 parents are gone through; of more, those are found that hold the subject', async () => {
    const parents = (of: string, count: number) => times(count, (i) => put(`${of}#parent@folder:p${i}`))
    await given(store, 'acme', ...parents('folder:at', 1_000), ...parents('folder:past', 1_001))
    await given(store, 'acme', put('folder:p999#viewer@user:ann'))
    expect(await can('folder:at')).toBe(true)
    expect(await can('folder:past')).toBe(true)
  })
})
