/** What a Store must answer across all organizations, on a store that holds nothing else. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { HeldRole, Store } from '../../../pdp/engine/store/contract.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { grant, organization, put } from '../../support/tuples.ts'
import { type OpenStore, openOnce } from './suite.ts'

export function reportingSuite(open: OpenStore): void {
  const t = openOnce(open)

  describe('reporting queries', () => {
    const grants = async (filter: Parameters<Store['roleGrants']>[0], countMax = 10) =>
      (await t.store.roleGrants(filter, { after: null, countMax })).map(({ log, id }) => `${log} ${id}`)

    beforeAll(async () => {
      await t.write(
        ENVIRONMENT,
        organization('acme'),
        organization('other'),
        grant('e1', 'reader', 'user:a', 'billing'),
      )
      await t.write('acme', grant('g2', 'reader', 'user:a', 'billing'), grant('g1', 'auditor', 'user:a'))
      await t.write('other', grant('g1', 'writer', 'group:x', 'billing'), grant('g3', 'reader', 'user:b', 'shop'))
    })

    test('lists role grants of all logs by log and id', async () => {
      expect(await grants({})).toEqual([`${ENVIRONMENT} e1`, 'acme g1', 'acme g2', 'other g1', 'other g3'])
      expect(await grants({}, 2)).toEqual([`${ENVIRONMENT} e1`, 'acme g1'])
      const rest = await t.store.roleGrants({}, { after: { log: 'acme', id: 'g1' }, countMax: 2 })
      expect(rest).toEqual([
        { log: 'acme', id: 'g2', app: 'billing', role: 'reader', subject: 'user:a' },
        { log: 'other', id: 'g1', app: 'billing', role: 'writer', subject: 'group:x' },
      ])
    })

    test.each<[string, Parameters<Store['roleGrants']>[0], readonly string[]]>([
      ['a log', { log: 'acme' }, ['acme g1', 'acme g2']],
      ['an id', { log: 'other', id: 'g1' }, ['other g1']],
      ['an app', { apps: ['billing'] }, [`${ENVIRONMENT} e1`, 'acme g2', 'other g1']],
      ['no app', { apps: [null] }, ['acme g1']],
      ['either', { apps: ['shop', null] }, ['acme g1', 'other g3']],
      ['a role', { apps: ['billing'], role: 'reader' }, [`${ENVIRONMENT} e1`, 'acme g2']],
      ['a subject', { subject: 'group:x' }, ['other g1']],
      ['no apps at all', { apps: [] }, []],
      ['a log that does not exist', { log: 'nowhere' }, []],
    ])('finds role grants by %s', async (_, filter, wanted) => {
      expect(await grants(filter)).toEqual(wanted)
    })

    test('says which roles are held together', async () => {
      expect(await sets({ app: 'billing', role: 'reader' })).toEqual([['billing reader', 'null auditor']])
      expect(await sets({ app: null, role: 'auditor' })).toEqual([['billing reader', 'null auditor']])
      expect(await sets({ app: 'billing', role: 'writer' }, { app: 'shop', role: 'reader' })).toEqual([
        ['billing writer'],
        ['shop reader'],
      ])
    })

    test.each<HeldRole>([
      { app: null, role: 'reader' },
      { app: 'shop', role: 'auditor' },
      { app: 'nothing', role: 'reader' },
    ])('says nothing of %o, which nobody holds', async (role) => {
      expect(await sets(role)).toEqual([])
    })

    const sets = async (...roles: HeldRole[]) =>
      (await t.store.roleSets(roles)).map((set) => set.map(({ app, role }) => `${app} ${role}`).sort()).sort()

    test('says in which shapes tuples of some types are stored, with an example each', async () => {
      await t.write('acme', put('doc:1#viewer@user:a'), put('doc:2#viewer@user:b:*'), put('doc:1#viewer@user:*'))
      await t.write('other', put('doc:1#viewer@group:x:y#member'), put('folder:1#owner@user:a'))
      expect(await t.store.tupleShapes(['doc', 'nothing'])).toEqual([
        {
          type: 'doc',
          relation: 'viewer',
          subject: 'group#member',
          condition: null,
          tuplesCount: 1,
          example: {
            organization: 'other',
            tuple: { object: 'doc:1', relation: 'viewer', subject: 'group:x:y#member' },
          },
        },
        {
          type: 'doc',
          relation: 'viewer',
          subject: 'user',
          condition: null,
          tuplesCount: 2,
          example: expect.anything(),
        },
        {
          type: 'doc',
          relation: 'viewer',
          subject: 'user:*',
          condition: null,
          tuplesCount: 1,
          example: expect.anything(),
        },
      ])
      expect(await t.store.tupleShapes([])).toEqual([])
    })
  })
}
