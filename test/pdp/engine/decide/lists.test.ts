/** Resources of a subject and subjects of a resource, page by page, on every store. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type {
  ListPage,
  ListResourcesRequest,
  ListSubjectsRequest,
  Pdp,
} from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { STORES } from '../../../support/stores.ts'
import { drop, given, grant, member, organization, PARADOX, put } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type folder
  relations
    define viewer: [user, service, user:*]
type doc
  relations
    define parent: [folder]
    define banned: [user]
    define viewer: [user, service, user:*, group#member] or viewer from parent
    define reader: viewer but not banned
`
const manifest = {
  app: 'docs',
  audiences: [],
  permissions: { 'docs:read': 'read' },
  roles: { reader: { name: 'Reader', permissions: ['docs:read'] } },
  model: MODEL,
}

describe.each(Object.entries(STORES))('lists on %s', (name, open) => {
  let store: Store
  let pdp: Pdp
  let close: () => Promise<void>
  const resources = (more: Partial<ListResourcesRequest> = {}): Promise<ListPage> =>
    pdp.listResources({ organization: 'acme', subject: user('ann'), relation: 'viewer', type: 'doc', ...more })
  const subjects = (more: Partial<ListSubjectsRequest> = {}): Promise<ListPage> =>
    pdp.listSubjects({ organization: 'acme', resource: 'doc:1', relation: 'viewer', type: 'user', ...more })

  beforeEach(async () => {
    ;({ store, close } = await open())
    pdp = createPdp({ store })
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest }, organization('acme'))
  })
  afterEach(() => close())

  describe('of resources', () => {
    test('hold what is related by a tuple, a group, a rule or a wildcard, and nothing else', async () => {
      await given(
        store,
        'acme',
        put('doc:direct#viewer@user:ann'),
        put('doc:group#viewer@group:g#member'),
        put('group:g#member@group:h#member'),
        put('group:h#member@user:ann'),
        put('doc:child#parent@folder:f'),
        put('folder:f#viewer@user:ann'),
        put('doc:open#viewer@user:*'),
        put('doc:expired#viewer@user:ann', 1),
        put('doc:other#viewer@user:bob'),
        put('docs:x#viewer@user:ann'),
        put('doc:direct#banned@user:ann'),
      )
      expect(await resources()).toMatchObject({
        items: ['doc:child', 'doc:direct', 'doc:group', 'doc:open'],
        nextPageToken: null,
        complete: true,
        revisionUnchanged: true,
      })
      expect((await resources({ relation: 'reader' })).items).toEqual(['doc:child', 'doc:group', 'doc:open'])
      expect((await resources({ subject: service('ann') })).items).toEqual([])
      expect((await resources({ type: 'folder' })).items).toEqual(['folder:f'])
      expect((await resources({ type: 'docs' })).items).toEqual(['docs:x'])
    })

    test('know apps and the organization itself, where roles and memberships count', async () => {
      await given(store, 'acme', grant('g1', 'reader', 'user:ann', 'docs'), member('ann', 'admin'))
      expect((await resources({ type: 'app', relation: 'docs:read' })).items).toEqual(['app:docs'])
      expect((await resources({ type: 'organization', relation: 'admin' })).items).toEqual(['organization:acme'])
      expect((await resources({ type: 'organization', relation: 'owner' })).items).toEqual([])
      expect((await resources({ type: 'organization', relation: 'docs:read', app: 'docs' })).items).toEqual([
        'organization:acme',
      ])
    })

    test('are empty in an unknown organization, for an unknown relation, and while suspended', async () => {
      await given(store, 'acme', put('doc:1#viewer@user:ann'), member('ann', 'member', 'suspended'))
      for (const request of [{ organization: 'nowhere' }, { relation: 'nothing' }, {}]) {
        expect(await resources(request)).toMatchObject({ items: [], nextPageToken: null, complete: true })
      }
    })
  })

  describe('of subjects', () => {
    test('hold everyone by name, and the wildcard for those without one', async () => {
      await given(
        store,
        'acme',
        put('doc:1#viewer@user:ann'),
        put('doc:1#viewer@group:g#member'),
        put('group:g#member@user:bob'),
        put('doc:1#viewer@service:bot'),
        put('doc:2#viewer@user:*'),
        put('doc:2#banned@user:eve'),
        member('mia', 'viewer'),
      )
      expect((await subjects()).items).toEqual(['user:ann', 'user:bob'])
      expect((await subjects({ type: 'service' })).items).toEqual(['service:bot'])
      expect((await subjects({ type: 'group' })).items).toEqual([])
      expect((await subjects({ type: 'group', subjectRelation: 'member' })).items).toEqual(['group:g#member'])
      expect((await subjects({ resource: 'doc:2', relation: 'reader' })).items).toEqual([
        'user:*',
        'user:ann',
        'user:bob',
        'user:mia',
      ])
    })

    test('does not take a wildcard for a grant where the model allows none', async () => {
      await given(store, 'acme', put('doc:1#banned@user:*'), put('group:g#member@user:*'), put('x:1#y@user:*'))
      await given(store, 'acme', put('doc:1#viewer@group:g#member'))
      expect((await subjects({ relation: 'banned' })).items).toEqual([])
      expect((await subjects()).items).toEqual([])
      expect((await subjects({ resource: 'x:1', relation: 'y' })).items).toEqual([])
    })

    test('know members without a tuple, and everyone who holds a role here, above or everywhere', async () => {
      await given(store, ENVIRONMENT, organization('child', 'acme'), grant('e', 'reader', 'service:bot', 'docs'))
      await given(store, 'acme', grant('g', 'reader', 'group:staff', 'docs'), put('group:staff#member@user:ann'))
      await given(store, 'child', grant('c', 'reader', 'user:cid', 'docs'), member('mia', 'owner'))
      const asked = { organization: 'child', resource: 'organization:child', app: 'docs' }
      expect((await subjects({ ...asked, relation: 'active_member' })).items).toEqual(['user:mia'])
      expect((await subjects({ ...asked, relation: 'docs:read' })).items).toEqual(['user:ann', 'user:cid'])
      expect((await subjects({ ...asked, relation: 'docs:read', type: 'service' })).items).toEqual(['service:bot'])
      expect((await subjects({ organization: 'child', resource: 'app:docs', relation: 'docs:read' })).items).toEqual([
        'user:ann',
        'user:cid',
      ])
    })
  })

  describe('in pages', () => {
    const count = 30
    const all = Array.from({ length: count }, (_, i) => `doc:${String(i).padStart(3, '0')}`)
    const walk = async (pageSize: number): Promise<readonly ListPage[]> => {
      const pages = [await resources({ pageSize })]
      while (pages.at(-1)?.nextPageToken != null)
        pages.push(await resources({ pageSize, pageToken: pages.at(-1)?.nextPageToken ?? null }))
      return pages
    }
    beforeEach(async () => {
      await given(store, 'acme', ...all.map((doc) => put(`${doc}#viewer@user:ann`)))
      await given(store, 'acme', ...all.map((doc) => put(`${doc}0#viewer@user:bob`)))
    })

    test('of any size each item stands in exactly one, in order', async () => {
      for (const pageSize of [1, 7, 29, 30, 31]) {
        const pages = await walk(pageSize)
        expect(pages.flatMap((page) => page.items)).toEqual(all)
        expect(pages.every((p) => p.items.length <= pageSize && p.revisionUnchanged && p.complete)).toBe(true)
        expect(new Set(pages.map((page) => page.revision)).size).toBe(1)
      }
    })

    test('says when the pages are not of one revision', async () => {
      const first = await resources({ pageSize: 10 })
      await given(store, 'acme', drop('doc:000#viewer@user:ann'), put('doc:010a#viewer@user:ann'))
      const second = await resources({ pageSize: 10, pageToken: first.nextPageToken })
      expect([first.revisionUnchanged, second.revisionUnchanged]).toEqual([true, false])
      expect(second.items[1]).toBe('doc:010a')
      const third = await resources({ pageSize: 10, pageToken: second.nextPageToken })
      expect([third.revision === second.revision, third.revisionUnchanged]).toEqual([true, false])
    })

    test('looks at no more than its share of candidates for one page, and goes on from there', async () => {
      const many = Array.from({ length: 2_100 }, (_, i) => put(`doc:1#banned@user:${String(i).padStart(4, '0')}`))
      await given(store, 'acme', ...many, put('doc:1#viewer@user:z'))
      // Who has a viewer's tuple is told by the document, and no other subject is looked at.
      const told = await subjects({ pageSize: 5 })
      expect([told.items, told.complete, told.nextPageToken]).toEqual([['user:z'], true, null])
      // Roles are held by whom no tuple tells.
      const held = { resource: 'organization:acme', relation: 'docs:export', pageSize: 5 }
      const first = await subjects(held)
      expect([first.items, first.complete, first.nextPageToken === null]).toEqual([[], true, false])
      const second = await subjects({ ...held, pageToken: first.nextPageToken })
      expect([second.items, second.nextPageToken]).toEqual([[], null])
    })

    test('says that something could not be decided, and leaves it out', async () => {
      await given(store, ENVIRONMENT, { kind: 'manifest', manifest: PARADOX })
      await given(store, 'acme', ...['0', '1'].map((id) => put(`liar:${id}#named@user:ann`)), put('liar:0#next@liar:0'))
      const page = await resources({ type: 'liar', relation: 'honest' })
      expect([page.complete, page.items.includes('liar:0'), page.items.includes('liar:1')]).toEqual([
        false,
        false,
        true,
      ])
    })
  })

  // Requests are refused before a store is asked.
  if (name !== 'memory') return
  describe('asked wrongly', () => {
    test.each([
      ['a page of none', { pageSize: 0 }, '/pageSize'],
      ['a page of 1,001', { pageSize: 1_001 }, '/pageSize'],
      ['half an item', { pageSize: 1.5 }, '/pageSize'],
      ['a token that is no base64', { pageToken: '!!' }, '/pageToken'],
      ['an empty token', { pageToken: '' }, '/pageToken'],
      ['a token of another shape', { pageToken: Buffer.from('["doc:1",null]').toString('base64url') }, '/pageToken'],
      ['a token that is far too long', { pageToken: 'A'.repeat(2_049) }, '/pageToken'],
      ['a type with a space', { type: 'do c' }, '/type'],
      ['a type with a colon', { type: 'doc:1' }, '/type'],
      ['a relation with a space', { relation: 'view er' }, '/relation'],
      ['an organization with a hash', { organization: 'a#b' }, '/organization'],
      ['a subject without an id', { subject: user('') }, '/subject/id'],
    ])('refuses %s, naming its place', async (_, wrong, place) => {
      await expect(resources(wrong)).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place }] })
    })

    test.each([
      ['a resource without a type', { resource: 'doc' }, '/resource'],
      ['a wildcard as the resource', { resource: 'doc:*' }, '/resource'],
      ['a subject relation with a hash', { subjectRelation: 'a#b' }, '/subjectRelation'],
    ])('refuses %s, naming its place', async (_, wrong, place) => {
      await expect(subjects(wrong)).rejects.toMatchObject({ code: 'request_invalid', issues: [{ place }] })
    })

    test.each([
      ['another relation', { relation: 'reader' }],
      ['another type', { type: 'folder' }],
      ['another subject', { subject: user('bob') }],
      ['another kind of subject', { subject: service('ann') }],
      ['another organization', { organization: 'other' }],
      ['another app', { app: 'docs' }],
    ])('refuses a token that was given for %s', async (_, other) => {
      await given(store, 'acme', ...Array.from({ length: 9 }, (_, i) => put(`doc:${i}#viewer@user:ann`)))
      const { nextPageToken } = await resources({ pageSize: 5 })
      await expect(resources({ ...other, pageToken: nextPageToken })).rejects.toMatchObject({
        code: 'request_invalid',
        issues: [{ place: '/pageToken' }],
      })
    })
  })
})
