/** Why something is denied, in words: what was subtracted, names that nothing declares, a membership that does not count. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { AskedSubject, Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, member, PARADOX, put, putIf } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type team
  relations
    define member: [user]
type folder
  relations
    define banned: [user, team#member]
    define viewer: [user] but not banned
type doc
  relations
    define parent: [folder]
    define blocked: [user, team#member]
    define editor: [user]
    define viewer: (editor or viewer from parent) but not blocked
    define both: editor and viewer
    define reader: [user with cleared, team#member with cleared]
    define inherited: viewer from shelf
    define shelf: [folder with cleared]
    define calm: reader but not blocked
condition cleared(level: int, wanted: int, token: string, notes: list<string>, now: timestamp) {
  level >= wanted && token != "" && size(notes) < 100000 && now > timestamp("2020-01-01T00:00:00Z")
}
`
const stores: Record<string, () => Store> = { 'near memory': memoryStore, 'far memory': remoteMemoryStore }

describe.each(Object.entries(stores))('in %s', (_, open) => {
  let pdp: Pdp
  beforeAll(async () => {
    const store = open()
    const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model: MODEL }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest }, { kind: 'manifest', manifest: PARADOX })
    await given(
      store,
      'acme',
      ...['doc:1#editor@user:ann', 'doc:1#blocked@team:x#member', 'team:x#member@user:ann'].map((text) => put(text)),
      ...['doc:2#parent@folder:f', 'folder:f#viewer@user:bob', 'folder:f#banned@user:bob'].map((text) => put(text)),
      ...['doc:1#editor@user:sue', 'liar:0#next@liar:0', 'liar:0#named@user:ann'].map((text) => put(text)),
      putIf('doc:1#reader@user:max', 'cleared', { wanted: 5 }),
      putIf('doc:2#reader@team:x#member', 'cleared', { wanted: 6 }),
      putIf('doc:3#shelf@folder:f', 'cleared', { wanted: 7 }),
      member('sue', 'member', 'suspended'),
      member('ivy', 'member', 'invited'),
    )
    pdp = createPdp({ store })
  })
  const why = async (subject: AskedSubject, relation: string, resource: string, organization = 'acme') => {
    const permissions = [{ relation, resource }]
    const context = { level: 3, wanted: 1, token: 'hush-hush', notes: ['x'.repeat(4_000)], now: '2026-01-01T00:00:00Z' }
    const [result] = (await pdp.decide({ organization, subject, permissions, explain: true, context })).permissions
    expect(result?.allowed).toBe(false)
    return (result?.reason?.details ?? []).join('\n')
  }

  test.each<[string, AskedSubject, string, string, RegExp]>([
    [
      'a tuple that excludes, through a userset',
      user('ann'),
      'viewer',
      'doc:1',
      /^"but not" in doc:1#viewer takes it away: doc:1#blocked@team:x#member, then team:x#member@user:ann$/,
    ],
    [
      'one that excludes further down',
      user('bob'),
      'viewer',
      'doc:2',
      /in folder:f#viewer takes it away: folder:f#banned@user:bob/,
    ],
    ['one below an "and"', user('ann'), 'both', 'doc:1', /doc:1#blocked@team:x#member/],
    ['an unknown type', user('ann'), 'viewer', 'dco:1', /no model declares type "dco".*did you mean "doc"\?/],
    [
      'an unknown relation',
      user('ann'),
      'viewr',
      'doc:1',
      /type "doc" has no relation "viewr"; did you mean "viewer"\?/,
    ],
    [
      'an unknown type of the subject',
      { type: 'taem', id: 'x' },
      'viewer',
      'doc:1',
      /type "taem" of the subject; did you mean "team"/,
    ],
    ['a suspended membership', user('sue'), 'editor', 'doc:1', /the membership of user:sue in "acme" is suspended/],
    ['an invitation', user('ivy'), 'editor', 'doc:1', /user:ivy in "acme" is invited/],
    [
      'a condition that is false, with the values that it saw, of which the stored one wins',
      user('max'),
      'reader',
      'doc:1',
      /^doc:1#reader@user:max does not count: condition "cleared" is false for level = 3, wanted = 5, token = \(hidden\), notes = \["x{78}…, now = "2026-01-01T00:00:00Z"$/,
    ],
    ['one of a userset', user('ann'), 'reader', 'doc:2', /^doc:2#reader@team:x#member does not count: .* wanted = 6,/],
    ['one of a parent', user('ann'), 'inherited', 'doc:3', /^doc:3#shelf@folder:f does not count: .* wanted = 7,/],
    ['one below "but not"', user('max'), 'calm', 'doc:1', /^doc:1#reader@user:max does not count: .* wanted = 5,/],
    ['an answer that does not exist', user('ann'), 'honest', 'liar:0', /depends on its own absence/],
  ])('the denial names %s', async (_, subject, relation, resource, message) => {
    expect(await why(subject, relation, resource)).toMatch(message)
  })

  test('the denial names an organization that does not exist', async () => {
    expect(await why(user('ann'), 'viewer', 'doc:1', 'nowhere')).toMatch(/there is no organization "nowhere"/)
  })

  test('says nothing more where a tuple is all that is missing', async () => {
    expect(await why(user('zoe'), 'editor', 'doc:1')).toBe('')
    expect(await why(user('zoe'), 'viewer', 'doc:1')).toBe('')
  })

  test('has no such words in an allow, or where no reason is asked for', async () => {
    const permissions = [{ relation: 'editor', resource: 'doc:1' }]
    const allowed = await pdp.decide({ organization: 'acme', subject: user('ann'), permissions, explain: true })
    expect(allowed.permissions[0]?.reason?.details ?? []).toEqual([])
    const plain = await pdp.decide({ organization: 'acme', subject: user('zoe'), permissions })
    expect(plain.permissions[0]?.reason).toBeUndefined()
  })
})
