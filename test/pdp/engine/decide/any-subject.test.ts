/** Questions about whatever a tuple may name: objects, usersets and everybody of a type, in names of every script. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { AskedSubject, Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import type { Manifest } from '../../../../pdp/shared/domain/manifest.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, grant, put } from '../../../support/tuples.ts'

const MANIFEST: Manifest = {
  app: 'docs',
  audiences: [],
  permissions: { 'docs:read': 'Read' },
  roles: { reader: { name: 'Reader', permissions: ['docs:read'] } },
  model: `model
  schema 1.1
type robot
type team
  relations
    define lead: [user]
    define member: [user, robot, team#member] or lead
type folder
  relations
    define Viewer: [user, user:*, team#member, team#lead]
type doc
  relations
    define parent: [folder]
    define editor: [user]
    define blocked: [user]
    define can_view: Viewer from parent or editor
    define can_see: can_view but not blocked
`,
}
const TUPLES = [
  'team:a#member@team:b#member',
  'team:b#member@robot:r2',
  'team:b#lead@user:lea',
  'folder:f#Viewer@team:a#member',
  'folder:open#Viewer@user:*',
  'doc:1#parent@folder:f',
  'doc:2#parent@folder:open',
  'doc:2#blocked@user:bad',
  'folder:f#Viewer@team:x!#lead',
  'folder:f#Viewer@team:x#lead',
  'team:x!#lead@user:z',
  // No model lets this one count.
  'folder:closed#Viewer@robot:*',
  'doc:1#editor@user:*',
]
const stores: Record<string, () => Store> = { 'near memory': memoryStore, 'far memory': remoteMemoryStore }

describe.each(Object.entries(stores))('in %s', (_, open) => {
  let pdp: Pdp
  beforeAll(async () => {
    const store = open()
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest: MANIFEST })
    await given(store, 'acme', ...TUPLES.map((text) => put(text)), grant('1', 'reader', 'group:g', 'docs'))
    await given(store, 'acme', put('group:g#member@user:*'), put('group:g#member@group:h#member'))
    await given(store, 'plain', put('Straße:Ä#Über@人:山田'), put(`note:${'é'.repeat(256)}#viewer@user:😀`))
    await given(store, 'plain', put('note:\ue000#viewer@user:😀'), put('note:😀#viewer@user:😀'))
    pdp = createPdp({ store })
  })

  const can = (subject: AskedSubject, relation: string, resource: string): Promise<boolean> =>
    pdp.can('acme', subject, relation, resource)
  const set = (type: string, id: string, relation: string): AskedSubject => ({ type, id, relation })
  const everyUser = { type: 'user', id: '*' }

  test.each<[string, AskedSubject, string, string]>([
    ['an object', { type: 'robot', id: 'r2' }, 'can_view', 'doc:1'],
    ['a userset that a tuple names', set('team', 'a', 'member'), 'can_view', 'doc:1'],
    ['a userset inside it', set('team', 'b', 'member'), 'can_view', 'doc:1'],
    ['a userset that a rule puts inside it', set('team', 'b', 'lead'), 'can_view', 'doc:1'],
    ['a userset of the resource’s own', set('doc', '1', 'editor'), 'can_view', 'doc:1'],
    ['a userset, itself', set('doc', '9', 'can_view'), 'can_view', 'doc:9'],
    ['everybody of a type', everyUser, 'can_view', 'doc:2'],
    ['a person whom only the wildcard names', user('anybody'), 'can_see', 'doc:2'],
    ['everybody, although somebody is taken out', everyUser, 'can_see', 'doc:2'],
  ])('%s is allowed', async (_, ...asked) => {
    expect(await can(...asked)).toBe(true)
  })

  test.each<[string, AskedSubject, string, string]>([
    ['an object of another id', { type: 'robot', id: 'r3' }, 'can_view', 'doc:1'],
    ['an object that is in the set only with a relation', { type: 'team', id: 'a' }, 'can_view', 'doc:1'],
    ['a larger userset', set('team', 'a', 'member'), 'member', 'team:b'],
    ['a userset of another relation', set('team', 'a', 'lead'), 'can_see', 'doc:2'],
    ['everybody, where a wildcard of another type is', everyUser, 'Viewer', 'folder:closed'],
    ['everybody of a type whose wildcard does not count', { type: 'robot', id: '*' }, 'Viewer', 'folder:closed'],
    ['everybody, by a wildcard in a relation that takes none', everyUser, 'editor', 'doc:1'],
    ['everybody of a type, where somebody is', { type: 'robot', id: '*' }, 'can_view', 'doc:1'],
    ['a userset of people who are named by a wildcard', set('user', 'x', 'friend'), 'can_view', 'doc:2'],
    ['who is blocked', user('bad'), 'can_see', 'doc:2'],
    ['the relation in other capitals', user('anybody'), 'viewer', 'folder:open'],
  ])('%s is not', async (_, ...asked) => {
    expect(await can(...asked)).toBe(false)
  })

  test('a group holds the roles of its groups and its own, and a wildcard in a group holds none', async () => {
    const holds = (subject: AskedSubject) => can(subject, 'docs:read', 'app:docs')
    expect(await holds(set('group', 'g', 'member'))).toBe(true)
    expect(await holds(set('group', 'h', 'member'))).toBe(true)
    expect(await holds(set('group', 'i', 'member'))).toBe(false)
    expect(await holds({ type: 'group', id: 'h' })).toBe(false)
    expect(await holds(everyUser)).toBe(false)
  })

  test('names are taken as they are written, in every script', async () => {
    const inPlain = (subject: AskedSubject, relation: string, resource: string) =>
      pdp.can('plain', subject, relation, resource)
    expect(await inPlain({ type: '人', id: '山田' }, 'Über', 'Straße:Ä')).toBe(true)
    expect(await inPlain({ type: '人', id: '山田' }, 'über', 'Straße:Ä')).toBe(false)
    expect(await inPlain({ type: '人', id: '山田' }, 'Über', 'Straße:A\u0308')).toBe(false)
    expect(await inPlain(user('😀'), 'viewer', `note:${'é'.repeat(256)}`)).toBe(true)
    const items: string[] = []
    for (let pageToken: string | null | undefined; pageToken !== null; ) {
      const request = { organization: 'plain', subject: user('😀'), relation: 'viewer', type: 'note', pageSize: 1 }
      const page = await pdp.listResources({ ...request, pageToken: pageToken ?? null })
      items.push(...page.items)
      pageToken = page.nextPageToken
    }
    expect(items).toEqual([`note:${'é'.repeat(256)}`, 'note:\ue000', 'note:😀'])
  })

  test.each<[object, string]>([
    [{ subject: { type: 'a:b', id: 'x' } }, '/subject/type'],
    [{ subject: { type: 'user', id: '' } }, '/subject/id'],
    [{ subject: { type: 'user', id: 'a b' } }, '/subject/id'],
    [{ subject: { type: 'user', id: 'a#b' } }, '/subject/id'],
    [{ subject: { type: 'user', id: 'é'.repeat(257) } }, '/subject/id'],
    [{ subject: { type: 'user', id: '\ud800' } }, '/subject/id'],
    [{ subject: { type: 'user', id: '*', relation: 'friend' } }, '/subject/relation'],
    [{ subject: { type: 'team', id: 'a', relation: 'a#b' } }, '/subject/relation'],
    [{ subject: { type: 'team', id: 'a', relation: '' } }, '/subject/relation'],
    [{ relation: 'can view' }, '/relation'],
    [{ type: 'do:c' }, '/type'],
  ])('a list with %j is refused at %s', async (part, place) => {
    const request = { organization: 'acme', subject: user('a'), relation: 'can_view', type: 'doc', ...part }
    await expect(pdp.listResources(request)).rejects.toMatchObject({
      code: 'request_invalid',
      issues: [expect.objectContaining({ place })],
    })
  })

  const usersets = async (type: string, relation: string, resource: string, pageSize = 100) => {
    const items: string[] = []
    for (let pageToken: string | null | undefined; pageToken !== null; ) {
      const page = await pdp.listSubjects({
        organization: 'acme',
        resource,
        relation: 'can_view',
        type,
        subjectRelation: relation,
        pageSize,
        pageToken: pageToken ?? null,
      })
      items.push(...page.items)
      pageToken = page.nextPageToken
    }
    return items
  }
  test.each([1, 2, 100])('a list of usersets has those that rules derive, each once, in pages of %i', async (size) => {
    expect(await usersets('team', 'member', 'doc:1', size)).toEqual(['team:a#member', 'team:b#member'])
    expect(await usersets('team', 'lead', 'doc:1', size)).toEqual([
      'team:a#lead',
      'team:b#lead',
      'team:x!#lead',
      'team:x#lead',
    ])
    expect(await usersets('folder', 'Viewer', 'doc:1', size)).toEqual(['folder:f#Viewer'])
    expect(await usersets('doc', 'editor', 'doc:1', size)).toEqual(['doc:1#editor'])
    expect(await usersets('robot', 'friend', 'doc:1', size)).toEqual([])
  })

  test('a list of resources is about any subject', async () => {
    const list = async (subject: AskedSubject, type = 'doc') =>
      (await pdp.listResources({ organization: 'acme', subject, relation: 'can_view', type })).items
    expect(await list({ type: 'robot', id: 'r2' })).toEqual(['doc:1'])
    expect(await list(set('team', 'b', 'lead'))).toEqual(['doc:1'])
    expect(await list(everyUser)).toEqual(['doc:2'])
    expect(await list(set('doc', 'unseen', 'can_view'))).toEqual(['doc:unseen'])
  })
})
