/** What a Store must keep true of the organization tree and of the manifests of apps. */
import { describe, expect, test } from 'vitest'
import type { OrganizationFilter, Store } from '../../../pdp/engine/store/contract.ts'
import { PdpError } from '../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { organization, put } from '../../support/tuples.ts'
import { code, type OpenStore, useStore } from './suite.ts'

export function environmentSuite(open: OpenStore): void {
  const t = useStore(open)

  describe('organizations', () => {
    test('keeps them in a tree without cycles', async () => {
      await t.write(ENVIRONMENT, organization(t.id('mid'), t.acme), organization(t.id('low'), t.id('mid')))
      await expect(t.write(ENVIRONMENT, organization(t.acme, t.id('low')))).rejects.toEqual(code('conflict'))
      await expect(t.write(ENVIRONMENT, organization(t.acme, t.acme))).rejects.toEqual(code('conflict'))
      await expect(t.write(ENVIRONMENT, organization(t.id('x'), t.id('nowhere')))).rejects.toEqual(
        code('organization_unknown'),
      )
    })

    test('is at most 25 deep', async () => {
      for (let i = 1; i < 25; i++)
        await t.write(ENVIRONMENT, organization(t.id(`o${i}`), i === 1 ? t.acme : t.id(`o${i - 1}`)))
      await expect(t.write(ENVIRONMENT, organization(t.id('o25'), t.id('o24')))).rejects.toEqual(code('conflict'))
      await t.write(ENVIRONMENT, organization(t.id('root')))
      await expect(t.write(ENVIRONMENT, organization(t.acme, t.id('root')))).rejects.toEqual(code('conflict'))
    })

    test('never gives a deleted id out again, nor keeps what it held', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'), {
        kind: 'membership',
        user: 'a',
        membership: { role: 'owner', status: 'active' },
      })
      await t.write(ENVIRONMENT, { kind: 'organization', id: t.acme, organization: null })
      expect(await t.subjects('doc:1', 'viewer')).toEqual([])
      expect(await t.store.members(t.acme, { after: null, countMax: 10 })).toEqual([])
      await expect(t.write(t.acme, put('doc:1#viewer@user:a'))).rejects.toBeInstanceOf(PdpError)
      await expect(t.write(ENVIRONMENT, organization(t.acme))).rejects.toEqual(code('conflict'))
    })

    test('stays while it has children', async () => {
      await t.write(ENVIRONMENT, organization(t.id('mid'), t.acme))
      await expect(t.write(ENVIRONMENT, { kind: 'organization', id: t.acme, organization: null })).rejects.toEqual(
        code('conflict'),
      )
    })

    test('lists in pages', async () => {
      await t.write(ENVIRONMENT, organization(t.id('b')), organization(t.id('c')))
      expect(await listed({}, { after: t.id('a'), countMax: 2 })).toEqual([t.acme, t.id('b')])
      expect(await listed({}, { after: t.id('b'), countMax: 2 })).toEqual([t.id('c')])
    })

    test('lists what is within one, or directly below one, in whole pages', async () => {
      await t.write(ENVIRONMENT, organization(t.id('b'), t.acme), organization(t.id('z')))
      await t.write(ENVIRONMENT, organization(t.id('a'), t.id('b')), organization(t.id('c'), t.acme))
      const within = { within: t.acme }
      expect(await listed(within, { after: null, countMax: 3 })).toEqual([t.id('a'), t.acme, t.id('b')])
      expect(await listed(within, { after: t.id('b'), countMax: 3 })).toEqual([t.id('c')])
      expect(await listed({ within: t.id('b') }, { after: null, countMax: 9 })).toEqual([t.id('a'), t.id('b')])
      const children = { parent: t.acme }
      expect(await listed(children, { after: null, countMax: 1 })).toEqual([t.id('b')])
      expect(await listed(children, { after: t.id('b'), countMax: 9 })).toEqual([t.id('c')])
    })

    test.each<OrganizationFilter>([{ within: 'nowhere' }, { parent: 'nowhere' }, { within: '' }, { parent: '' }])(
      'lists nothing for %o, which does not exist',
      async (filter) => {
        await t.write(ENVIRONMENT, organization(t.id('b'), t.acme))
        expect(await listed(filter, { after: null, countMax: 9 })).toEqual([])
      },
    )

    const listed = async (...asked: Parameters<Store['organizations']>) =>
      (await t.store.organizations(...asked)).map(({ id }) => id)
  })

  describe('manifests', () => {
    const billing = () => ({
      app: t.id('billing'),
      audiences: [`https://${t.id('billing')}.example`],
      permissions: { 'invoices:read': 'read' },
      roles: { reader: { name: 'Reader', permissions: ['invoices:read'] } },
      model: null,
    })

    test('numbers versions, and a repeated one is no change', async () => {
      const manifest = billing()
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest })
      expect(await t.write(ENVIRONMENT, { kind: 'manifest', manifest })).toMatchObject({ changed: false })
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, roles: {} } })
      expect(await t.store.manifest(manifest.app)).toEqual({ ...manifest, roles: {}, version: 2 })
      expect(await t.store.manifest(t.id('other'))).toBeNull()
    })

    test('leaves an audience with the app that first declared it', async () => {
      const manifest = billing()
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest })
      await expect(
        t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, app: t.id('thief') } }),
      ).rejects.toEqual(code('conflict'))
      expect(await t.store.manifest(t.id('thief'))).toBeNull()
    })

    test('leaves a resource type with the app that first declared it; types of subjects are nobody’s', async () => {
      const manifest = billing()
      const model = (type: string): string =>
        `model\n  schema 1.1\ntype user\ntype ${type}\n  relations\n    define viewer: [user]\n`
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, model: model(t.id('doc')) } })
      const other = { ...manifest, app: t.id('other'), audiences: [] }
      await expect(
        t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model(t.id('doc')) } }),
      ).rejects.toEqual(code('conflict'))
      expect(await t.store.manifest(t.id('other'))).toBeNull()
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model(t.id('page')) } })
      expect((await t.store.manifest(t.id('other')))?.version).toBe(1)
      await t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, model: model('group') } })
      await expect(
        t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model('group') } }),
      ).rejects.toEqual(code('conflict'))
    })

    test('refuses a role with a permission that it does not declare', async () => {
      const manifest = billing()
      const roles = { reader: { name: 'Reader', permissions: ['invoices:approve'] } }
      await expect(t.write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, roles } })).rejects.toEqual(
        code('request_invalid'),
      )
    })
  })
}
