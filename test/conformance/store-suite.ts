/** What every Store must do. An implementation is done when this passes; an exception needs a reason. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Change } from '../../pdp/domain/change.ts'
import { PdpError } from '../../pdp/domain/errors.ts'
import { ENVIRONMENT, TOKENS } from '../../pdp/domain/log.ts'
import { parseTuple } from '../../pdp/domain/names.ts'
import type { Tuple } from '../../pdp/domain/tuple.ts'
import { type RowKey, type RowSet, SET_ROWS_MAX, type Store } from '../../pdp/store/contract.ts'
import { context, drop, grant, organization, put, tuple } from '../support/tuples.ts'

const code = (wanted: string) => expect.objectContaining({ code: wanted })

export function storeSuite(name: string, open: () => Promise<{ store: Store; close(): Promise<void> }>): void {
  describe(`store ${name}`, () => {
    let store: Store
    let close: () => Promise<void>
    const write = (log: string, ...changes: Change[]) => store.write(log, changes, { context })
    const read = async (key: RowKey): Promise<RowSet> => {
      const { rows } = await store.rows([], [key])
      const found = rows.find((r) => JSON.stringify(r.key) === JSON.stringify(key))
      if (found === undefined) throw new Error('the row set that was asked for is missing')
      return found
    }
    const subjects = async (object: string, relation: string): Promise<readonly string[]> => {
      const set = await read({ log: 'acme', kind: 'set', object, relation })
      return 'subjects' in set ? set.subjects.map((s) => s.subject).sort() : []
    }

    beforeEach(async () => {
      ;({ store, close } = await open())
      await write(ENVIRONMENT, organization('acme'))
    })
    afterEach(() => close())

    describe('write', () => {
      it('raises the revision by one and gives each raise its own write id', async () => {
        const first = await write('acme', put('doc:1#viewer@user:a'))
        const before = (await store.vector(['acme'])).logs.get('acme')
        const second = await write('acme', put('doc:1#viewer@user:b'))
        const after = (await store.vector(['acme'])).logs.get('acme')
        expect([first, second]).toEqual([
          { revision: 1, changed: true },
          { revision: 2, changed: true },
        ])
        expect([before?.revision, after?.revision]).toEqual([1, 2])
        expect(before?.writeId).not.toBe(after?.writeId)
      })

      it('raises nothing when it changes nothing', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        expect(await write('acme', put('doc:1#viewer@user:a'), drop('doc:9#viewer@user:a'))).toEqual({
          revision: 1,
          changed: false,
        })
        expect((await store.vector(['acme'])).logs.get('acme')?.revision).toBe(1)
        expect((await store.entries([{ log: 'acme', from: 1, to: 9 }], 10)).map((e) => e.revision)).toEqual([1])
      })

      it('logs only what took effect, in order, with who did it', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        await write('acme', put('doc:1#viewer@user:a'), put('doc:2#viewer@user:a'), drop('doc:1#viewer@user:z'))
        const [, ...entries] = await store.entries([{ log: 'acme', from: 1, to: 2 }], 10)
        expect(entries.map((e) => e.change)).toEqual([put('doc:2#viewer@user:a')])
        expect(entries[0]).toMatchObject({ log: 'acme', revision: 2, actor: 'client:test', requestId: 'r1' })
        expect(entries[0]?.writeId).toBe((await store.vector(['acme'])).logs.get('acme')?.writeId)
      })

      it('sets the expiry of a tuple that exists', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        expect(await write('acme', put('doc:1#viewer@user:a', 5_000))).toEqual({ revision: 2, changed: true })
        expect(await read({ log: 'acme', kind: 'set', object: 'doc:1', relation: 'viewer' })).toMatchObject({
          subjects: [{ subject: 'user:a', expiresAtMs: 5_000 }],
        })
      })

      it('applies all changes of a batch or none', async () => {
        const grant = { id: 'g1', app: null, role: 'reader', subject: 'user:a' }
        await write('acme', { kind: 'role_grant', op: 'write', grant })
        const clash: Change = { kind: 'role_grant', op: 'write', grant: { ...grant, role: 'other' } }
        await expect(write('acme', put('doc:1#viewer@user:a'), clash)).rejects.toEqual(code('conflict'))
        expect(await subjects('doc:1', 'viewer')).toEqual([])
        expect((await store.vector(['acme'])).logs.get('acme')?.revision).toBe(1)
      })

      it('keeps revisions contiguous when writers race', async () => {
        const writes = Array.from({ length: 20 }, (_, i) => write('acme', put(`doc:${i}#viewer@user:a`)))
        const revisions = (await Promise.all(writes)).map((w) => w.revision)
        expect(revisions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
        expect((await store.entries([{ log: 'acme', from: 0, to: 20 }], 100)).map((e) => e.revision)).toEqual(
          Array.from({ length: 20 }, (_, i) => i + 1),
        )
      })

      it('deletes what a racing writer had committed first', async () => {
        await Promise.all(Array.from({ length: 10 }, () => write('acme', put('doc:1#viewer@user:a'))))
        await Promise.all([write('acme', drop('doc:1#viewer@user:a')), write('acme', drop('doc:1#viewer@user:a'))])
        expect(await subjects('doc:1', 'viewer')).toEqual([])
      })

      it('refuses an organization that does not exist', async () => {
        await expect(write('nowhere', put('doc:1#viewer@user:a'))).rejects.toEqual(code('organization_unknown'))
      })

      it.each([
        ['an object without a type', put('x:1#viewer@user:a'), { object: '1' }],
        ['an empty id', put('x:1#viewer@user:a'), { object: 'doc:' }],
        ['a wildcard as an object', put('x:1#viewer@user:a'), { object: 'doc:*' }],
        ['a hash in an id', put('x:1#viewer@user:a'), { object: 'doc:1#x' }],
        ['a space in an id', put('x:1#viewer@user:a'), { subject: 'user:a b' }],
        ['a capital in a relation', put('x:1#viewer@user:a'), { relation: 'Viewer' }],
        ['a control byte', put('x:1#viewer@user:a'), { subject: 'user:a\u0000' }],
        ['an id of 257 characters', put('x:1#viewer@user:a'), { object: `doc:${'x'.repeat(257)}` }],
        ['a tier of the organization', put('x:1#viewer@user:a'), { object: 'organization:acme', relation: 'owner' }],
        ['active_member', put('x:1#viewer@user:a'), { object: 'organization:other', relation: 'active_member' }],
      ])('refuses %s, naming its place, and applies nothing', async (_, change, wrong) => {
        if (change.kind !== 'tuple') throw new Error('not a tuple')
        const bad: Change = { ...change, tuple: { ...change.tuple, ...wrong } }
        await expect(write('acme', put('doc:1#viewer@user:a'), bad)).rejects.toMatchObject({
          code: 'request_invalid',
          mistakes: [{ place: '/1' }],
        })
        expect(await subjects('doc:1', 'viewer')).toEqual([])
      })

      it('refuses a batch that names one tuple twice', async () => {
        await expect(write('acme', put('doc:1#viewer@user:a'), drop('doc:1#viewer@user:a'))).rejects.toEqual(
          code('request_invalid'),
        )
      })

      it('refuses a change that belongs to another log', async () => {
        await expect(write('acme', organization('other'))).rejects.toEqual(code('request_invalid'))
        await expect(write(ENVIRONMENT, put('doc:1#viewer@user:a'))).rejects.toEqual(code('request_invalid'))
        await expect(write(TOKENS, { kind: 'clear' })).rejects.toEqual(code('request_invalid'))
      })

      it('accepts ids with colons, at signs and slashes', async () => {
        await write('acme', put('doc:a:b@c/d#viewer@user:x@y.example'))
        expect(await subjects('doc:a:b@c/d', 'viewer')).toEqual(['user:x@y.example'])
      })
    })

    describe('preconditions', () => {
      const guarded = (text: string, exists: boolean) =>
        store.write('acme', [put('doc:2#viewer@user:a')], {
          context,
          preconditions: [{ tuple: parseTuple(text), exists }],
        })

      it('lets the write through when they hold', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        expect(await guarded('doc:1#viewer@user:a', true)).toEqual({ revision: 2, changed: true })
        expect(await guarded('doc:3#viewer@user:a', false)).toEqual({ revision: 2, changed: false })
      })

      it('refuses the whole write when one does not hold', async () => {
        await expect(guarded('doc:1#viewer@user:a', true)).rejects.toEqual(code('precondition_failed'))
        expect(await subjects('doc:2', 'viewer')).toEqual([])
      })

      it('counts an expired tuple as absent', async () => {
        await write('acme', put('doc:1#viewer@user:a', 1))
        await expect(guarded('doc:1#viewer@user:a', true)).rejects.toEqual(code('precondition_failed'))
      })
    })

    describe('rows', () => {
      it('answers an empty set for what does not exist', async () => {
        expect(await read({ log: 'acme', kind: 'set', object: 'doc:1', relation: 'viewer' })).toMatchObject({
          subjects: [],
          complete: true,
        })
        expect(
          await read({ log: 'acme', kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:a' }),
        ).toMatchObject({ row: null })
        expect(await read({ log: 'acme', kind: 'groups', subject: 'user:a' })).toMatchObject({ groups: [] })
        expect(await read({ log: 'acme', kind: 'membership', user: 'a' })).toMatchObject({ membership: null })
        expect(await read({ log: ENVIRONMENT, kind: 'organization', id: 'nowhere' })).toMatchObject({
          organization: null,
        })
      })

      it('keeps organizations apart', async () => {
        await write(ENVIRONMENT, organization('other'))
        await write('other', put('doc:1#viewer@user:a'))
        expect(await subjects('doc:1', 'viewer')).toEqual([])
      })

      it('brings the groups above a subject along, ending in empty sets', async () => {
        await write(
          'acme',
          put('group:a#member@user:u'),
          put('group:b#member@group:a#member'),
          put('group:c#member@group:b#member', 9_000),
        )
        const { rows } = await store.rows(['acme'], [{ log: 'acme', kind: 'groups', subject: 'user:u' }])
        const above = Object.fromEntries(rows.flatMap((r) => ('groups' in r ? [[r.key.subject, r.groups]] : [])))
        expect(above).toEqual({
          'user:u': [{ subject: 'group:a#member', expiresAtMs: null }],
          'group:a#member': [{ subject: 'group:b#member', expiresAtMs: null }],
          'group:b#member': [{ subject: 'group:c#member', expiresAtMs: 9_000 }],
          'group:c#member': [],
        })
      })

      it('ends where groups form a cycle', async () => {
        await write(
          'acme',
          put('group:a#member@user:u'),
          put('group:b#member@group:a#member'),
          put('group:a#member@group:b#member'),
        )
        const { rows } = await store.rows(['acme'], [{ log: 'acme', kind: 'groups', subject: 'user:u' }])
        expect(rows).toHaveLength(3)
      })

      it('brings the grants of the groups above a subject along', async () => {
        const grant = { id: 'g1', app: 'billing', role: 'approver', subject: 'group:b' }
        await write('acme', put('group:a#member@user:u'), put('group:b#member@group:a#member'), {
          kind: 'role_grant',
          op: 'write',
          grant,
        })
        const { rows } = await store.rows(['acme'], [{ log: 'acme', kind: 'grants', subject: 'user:u' }])
        const grants = Object.fromEntries(rows.flatMap((r) => ('grants' in r ? [[r.key.subject, r.grants]] : [])))
        expect(grants).toEqual({ 'user:u': [], 'group:a': [], 'group:b': [grant] })
      })

      it('brings the ancestors of an organization along', async () => {
        await write(ENVIRONMENT, organization('mid', 'acme'), organization('low', 'mid'))
        const { rows } = await store.rows([], [{ log: ENVIRONMENT, kind: 'organization', id: 'low' }])
        expect(rows.map((r) => ('organization' in r ? r.organization?.id : '')).sort()).toEqual(['acme', 'low', 'mid'])
      })

      it(`gives a set of ${SET_ROWS_MAX} rows whole and one more only by its usersets`, async () => {
        await write('acme', ...Array.from({ length: SET_ROWS_MAX }, (_, i) => put(`doc:1#viewer@user:${i}`)))
        const key: RowKey = { log: 'acme', kind: 'set', object: 'doc:1', relation: 'viewer' }
        expect(await read(key)).toMatchObject({ complete: true, subjects: { length: SET_ROWS_MAX } })
        await write('acme', put('doc:1#viewer@group:x#member'))
        expect(await read(key)).toMatchObject({
          complete: false,
          subjects: [{ subject: 'group:x#member', expiresAtMs: null }],
        })
        const probe = await read({ log: 'acme', kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:7' })
        expect(probe).toMatchObject({ row: { subject: 'user:7', expiresAtMs: null } })
      })

      it('gives rows and standings of one moment', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        const { vector } = await store.rows(
          ['acme', ENVIRONMENT, 'nowhere'],
          [{ log: 'acme', kind: 'membership', user: 'a' }],
        )
        expect([...vector.logs.keys()].sort()).toEqual([ENVIRONMENT, 'acme'])
        expect(vector.logs.get('acme')).toMatchObject({ revision: 1, entitlementVersion: 0 })
        expect(vector.clockMs).toBeGreaterThan(1_000_000_000_000)
      })
    })

    describe('snapshot', () => {
      it('does not see what is written while it is open', async () => {
        let written: Promise<unknown> = Promise.resolve()
        const seen = await store.snapshot(async (at) => {
          const key: RowKey = { log: 'acme', kind: 'set', object: 'doc:1', relation: 'viewer' }
          const before = await at.rows(['acme'], [key])
          written = write('acme', put('doc:1#viewer@user:a'))
          await new Promise((resolve) => setTimeout(resolve, 50))
          const after = await at.rows(['acme'], [key])
          return [before, after].map((r) => [
            r.vector.logs.get('acme')?.revision,
            r.rows.length && 'subjects' in r.rows[0]! ? r.rows[0].subjects.length : -1,
          ])
        })
        await written
        expect(seen).toEqual([
          [0, 0],
          [0, 0],
        ])
        expect(await subjects('doc:1', 'viewer')).toEqual(['user:a'])
      })
    })

    describe('entries', () => {
      it('never cuts a revision in half', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        await write('acme', put('doc:2#viewer@user:a'), put('doc:3#viewer@user:a'))
        const range = [{ log: 'acme', from: 0, to: 2 }]
        expect((await store.entries(range, 3)).map((e) => e.revision)).toEqual([1, 2, 2])
        expect((await store.entries(range, 2)).map((e) => e.revision)).toEqual([1])
        expect((await store.entries([{ log: 'acme', from: 1, to: 2 }], 2)).map((e) => e.revision)).toEqual([1])
      })

      it('gives the first entry of the lower revision and all that lies above it', async () => {
        for (const i of [1, 2, 3, 4]) await write('acme', put(`doc:${i}#viewer@user:a`))
        expect((await store.entries([{ log: 'acme', from: 1, to: 3 }], 10)).map((e) => e.revision)).toEqual([1, 2, 3])
      })
    })

    describe('entitlements', () => {
      const entitlement = (
        key: string,
        enabled: boolean,
        enforcement: 'DecisionApi' | 'Claims' = 'DecisionApi',
      ): Change => ({
        kind: 'entitlement',
        key,
        entitlement: { value: { enabled }, enforcement },
      })

      it('raises the entitlement version with every write, and with nothing else', async () => {
        await write('acme', put('doc:1#viewer@user:a'))
        await write('acme', entitlement('feature.x', true))
        await write('acme', entitlement('feature.x', true))
        await write('acme', entitlement('feature.x', false))
        const standing = (await store.vector(['acme'])).logs.get('acme')
        expect(await store.entitlements('acme', 'all')).toEqual({
          version: 2,
          writeId: standing?.entitlementWriteId,
          values: new Map([['feature.x', { value: { enabled: false }, enforcement: 'DecisionApi' }]]),
        })
      })

      it('reads by key, and nothing of what is not there', async () => {
        await write('acme', entitlement('a', true), entitlement('b', true, 'Claims'), entitlement('c', true))
        await write('acme', { kind: 'entitlement', key: 'c', entitlement: null })
        expect([...(await store.entitlements('acme', ['a', 'c', 'zz'])).values.keys()]).toEqual(['a'])
        expect(await store.entitlements('nowhere', ['a'])).toEqual({ version: 0, writeId: '', values: new Map() })
      })
    })

    describe('organizations', () => {
      it('keeps them in a tree without cycles', async () => {
        await write(ENVIRONMENT, organization('mid', 'acme'), organization('low', 'mid'))
        await expect(write(ENVIRONMENT, organization('acme', 'low'))).rejects.toEqual(code('conflict'))
        await expect(write(ENVIRONMENT, organization('acme', 'acme'))).rejects.toEqual(code('conflict'))
        await expect(write(ENVIRONMENT, organization('x', 'nowhere'))).rejects.toEqual(code('organization_unknown'))
      })

      it('is at most 25 deep', async () => {
        for (let i = 1; i < 25; i++) await write(ENVIRONMENT, organization(`o${i}`, i === 1 ? 'acme' : `o${i - 1}`))
        await expect(write(ENVIRONMENT, organization('o25', 'o24'))).rejects.toEqual(code('conflict'))
        await write(ENVIRONMENT, organization('root'))
        await expect(write(ENVIRONMENT, organization('acme', 'root'))).rejects.toEqual(code('conflict'))
      })

      it('never gives a deleted id out again, nor keeps what it held', async () => {
        await write('acme', put('doc:1#viewer@user:a'), {
          kind: 'membership',
          user: 'a',
          membership: { role: 'owner', status: 'active' },
        })
        await write(ENVIRONMENT, { kind: 'organization', id: 'acme', organization: null })
        expect(await subjects('doc:1', 'viewer')).toEqual([])
        expect(await store.members('acme', { after: null, countMax: 10 })).toEqual([])
        await expect(write('acme', put('doc:1#viewer@user:a'))).rejects.toBeInstanceOf(PdpError)
        await expect(write(ENVIRONMENT, organization('acme'))).rejects.toEqual(code('conflict'))
      })

      it('stays while it has children', async () => {
        await write(ENVIRONMENT, organization('mid', 'acme'))
        await expect(write(ENVIRONMENT, { kind: 'organization', id: 'acme', organization: null })).rejects.toEqual(
          code('conflict'),
        )
      })

      it('lists in pages', async () => {
        await write(ENVIRONMENT, organization('b'), organization('c'))
        expect((await store.organizations({ after: null, countMax: 2 })).map((o) => o.id)).toEqual(['acme', 'b'])
        expect((await store.organizations({ after: 'b', countMax: 2 })).map((o) => o.id)).toEqual(['c'])
      })
    })

    describe('manifests', () => {
      const manifest = {
        app: 'billing',
        audiences: ['https://billing.example'],
        permissions: { 'invoices:read': 'read' },
        roles: { reader: { name: 'Reader', permissions: ['invoices:read'] } },
        model: null,
      }

      it('numbers versions, and a repeated one is no change', async () => {
        await write(ENVIRONMENT, { kind: 'manifest', manifest })
        expect(await write(ENVIRONMENT, { kind: 'manifest', manifest })).toMatchObject({ changed: false })
        await write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, roles: {} } })
        expect(await store.manifest('billing')).toEqual({ ...manifest, roles: {}, version: 2 })
        expect(await store.manifest('other')).toBeNull()
      })

      it('leaves an audience with the app that first declared it', async () => {
        await write(ENVIRONMENT, { kind: 'manifest', manifest })
        await expect(write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, app: 'thief' } })).rejects.toEqual(
          code('conflict'),
        )
        expect(await store.manifest('thief')).toBeNull()
      })

      it('leaves a resource type with the app that first declared it; types of subjects are nobody’s', async () => {
        const model = (type: string): string =>
          `model\n  schema 1.1\ntype user\ntype ${type}\n  relations\n    define viewer: [user]\n`
        await write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, model: model('doc') } })
        const other = { ...manifest, app: 'other', audiences: [] }
        await expect(
          write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model('doc') } }),
        ).rejects.toEqual(code('conflict'))
        expect(await store.manifest('other')).toBeNull()
        await write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model('page') } })
        expect((await store.manifest('other'))?.version).toBe(1)
        await write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, model: model('group') } })
        await expect(
          write(ENVIRONMENT, { kind: 'manifest', manifest: { ...other, model: model('group') } }),
        ).rejects.toEqual(code('conflict'))
      })

      it('refuses a role with a permission that it does not declare', async () => {
        const roles = { reader: { name: 'Reader', permissions: ['invoices:approve'] } }
        await expect(write(ENVIRONMENT, { kind: 'manifest', manifest: { ...manifest, roles } })).rejects.toEqual(
          code('request_invalid'),
        )
      })
    })

    describe('survey', () => {
      const grants = async (filter: Parameters<Store['roleGrants']>[0], countMax = 10) =>
        (await store.roleGrants(filter, { after: null, countMax })).map(({ log, id }) => `${log} ${id}`)

      beforeEach(async () => {
        await write(ENVIRONMENT, organization('other'), grant('e1', 'reader', 'user:a', 'billing'))
        await write('acme', grant('g2', 'reader', 'user:a', 'billing'), grant('g1', 'auditor', 'user:a'))
        await write('other', grant('g1', 'writer', 'group:x', 'billing'), grant('g3', 'reader', 'user:b', 'shop'))
      })

      it('lists role grants of all logs by log and id', async () => {
        expect(await grants({})).toEqual([`${ENVIRONMENT} e1`, 'acme g1', 'acme g2', 'other g1', 'other g3'])
        expect(await grants({}, 2)).toEqual([`${ENVIRONMENT} e1`, 'acme g1'])
        const rest = await store.roleGrants({}, { after: { log: 'acme', id: 'g1' }, countMax: 2 })
        expect(rest).toEqual([
          { log: 'acme', id: 'g2', app: 'billing', role: 'reader', subject: 'user:a' },
          { log: 'other', id: 'g1', app: 'billing', role: 'writer', subject: 'group:x' },
        ])
      })

      it.each<[string, Parameters<Store['roleGrants']>[0], readonly string[]]>([
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

      it('says which roles are held together', async () => {
        const sets = await store.roleSets('billing')
        const names = sets.map((set) => set.map(({ app, role }) => `${app} ${role}`).sort()).sort()
        expect(names).toEqual([['billing reader', 'null auditor'], ['billing writer']])
        expect(await store.roleSets('nothing')).toEqual([[{ app: null, role: 'auditor' }]])
      })

      it('says in which shapes tuples of some types are stored, with an example each', async () => {
        await write('acme', put('doc:1#viewer@user:a'), put('doc:2#viewer@user:b:*'), put('doc:1#viewer@user:*'))
        await write('other', put('doc:1#viewer@group:x:y#member'), put('folder:1#owner@user:a'))
        expect(await store.tupleShapes(['doc', 'nothing'])).toEqual([
          {
            type: 'doc',
            relation: 'viewer',
            subject: 'group#member',
            tuplesCount: 1,
            example: {
              organization: 'other',
              tuple: { object: 'doc:1', relation: 'viewer', subject: 'group:x:y#member' },
            },
          },
          { type: 'doc', relation: 'viewer', subject: 'user', tuplesCount: 2, example: expect.anything() },
          { type: 'doc', relation: 'viewer', subject: 'user:*', tuplesCount: 1, example: expect.anything() },
        ])
        expect(await store.tupleShapes([])).toEqual([])
      })
    })

    describe('tuples', () => {
      it('lists in order, filtered, in pages', async () => {
        await write(
          'acme',
          put('doc:2#viewer@user:a'),
          put('doc:1#viewer@user:b'),
          put('doc:1#viewer@user:a'),
          put('doc:1#editor@user:a', 7_000),
        )
        const list = async (filter: Parameters<Store['tuples']>[1], after: Tuple | null = null, countMax = 10) =>
          (await store.tuples('acme', filter, { after, countMax })).map((t) => `${t.object}#${t.relation}@${t.subject}`)
        expect(await list({})).toEqual([
          'doc:1#editor@user:a',
          'doc:1#viewer@user:a',
          'doc:1#viewer@user:b',
          'doc:2#viewer@user:a',
        ])
        expect(await list({ subject: 'user:b' })).toEqual(['doc:1#viewer@user:b'])
        expect(await list({ object: 'doc:1', relation: 'viewer' })).toEqual([
          'doc:1#viewer@user:a',
          'doc:1#viewer@user:b',
        ])
        expect(await list({}, tuple('doc:1#viewer@user:a'), 1)).toEqual(['doc:1#viewer@user:b'])
        expect((await store.tuples('acme', { relation: 'editor' }, { after: null, countMax: 1 }))[0]?.expiresAtMs).toBe(
          7_000,
        )
      })
    })

    describe('members', () => {
      it('lists in pages, whatever the status', async () => {
        const member = (user: string, status: 'active' | 'invited'): Change => ({
          kind: 'membership',
          user,
          membership: { role: 'member', status },
        })
        await write('acme', member('b', 'invited'), member('a', 'active'))
        expect(await store.members('acme', { after: null, countMax: 1 })).toEqual([
          { user: 'a', role: 'member', status: 'active' },
        ])
        expect(await store.members('acme', { after: 'a', countMax: 9 })).toEqual([
          { user: 'b', role: 'member', status: 'invited' },
        ])
      })
    })
  })
}
