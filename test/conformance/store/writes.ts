/** What Store.write must do: whole or not at all, logged, and refused with the place of each fault. */
import { describe, expect, test } from 'vitest'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import { parseTuple } from '../../../pdp/shared/domain/names.ts'
import { context, drop, grant, member, organization, put, putIf } from '../../support/tuples.ts'
import { code, type OpenStore, useStore } from './suite.ts'

export function writesSuite(open: OpenStore): void {
  const t = useStore(open)

  describe('write', () => {
    test('raises the revision by one and gives each raise its own write id', async () => {
      const first = await t.write(t.acme, put('doc:1#viewer@user:a'))
      const before = (await t.store.vector([t.acme])).logs.get(t.acme)
      const second = await t.write(t.acme, put('doc:1#viewer@user:b'))
      const after = (await t.store.vector([t.acme])).logs.get(t.acme)
      expect([first, second]).toEqual([
        { position: before, changed: true, appliedCount: 1 },
        { position: after, changed: true, appliedCount: 1 },
      ])
      expect([before?.revision, after?.revision]).toEqual([1, 2])
      expect(before?.writeId).not.toBe(after?.writeId)
    })

    test('raises nothing when it changes nothing', async () => {
      const { position: before } = await t.write(t.acme, put('doc:1#viewer@user:a'))
      expect(await t.write(t.acme, put('doc:1#viewer@user:a'), drop('doc:9#viewer@user:a'))).toEqual({
        position: before,
        changed: false,
        appliedCount: 0,
      })
      expect((await t.store.vector([t.acme])).logs.get(t.acme)?.revision).toBe(1)
      expect((await t.store.entries([{ log: t.acme, from: 1, to: 9 }], 10)).map((e) => e.revision)).toEqual([1])
    })

    test('logs only what took effect, in order, with who did it', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      await t.write(t.acme, put('doc:1#viewer@user:a'), put('doc:2#viewer@user:a'), drop('doc:1#viewer@user:z'))
      const [, ...entries] = await t.store.entries([{ log: t.acme, from: 1, to: 2 }], 10)
      expect(entries.map((e) => e.change)).toEqual([put('doc:2#viewer@user:a')])
      expect(entries[0]).toMatchObject({ log: t.acme, revision: 2, actor: 'client:test', requestId: 'r1' })
      expect(entries[0]?.writeId).toBe((await t.store.vector([t.acme])).logs.get(t.acme)?.writeId)
    })

    test('sets the expiry of a tuple that exists', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      expect(await t.write(t.acme, put('doc:1#viewer@user:a', 5_000))).toMatchObject({
        position: { revision: 2 },
        changed: true,
      })
      expect(await t.read({ log: t.acme, kind: 'set', object: 'doc:1', relation: 'viewer' })).toMatchObject({
        subjects: [{ subject: 'user:a', expiresAtMs: 5_000 }],
      })
    })

    test('applies all changes of a batch or none', async () => {
      const grant = { id: 'g1', app: null, role: 'reader', subject: 'user:a' }
      await t.write(t.acme, { kind: 'role_grant', op: 'write', grant })
      const clash: Change = { kind: 'role_grant', op: 'write', grant: { ...grant, role: t.id('other') } }
      await expect(t.write(t.acme, put('doc:1#viewer@user:a'), clash)).rejects.toEqual(code('conflict'))
      expect(await t.subjects('doc:1', 'viewer')).toEqual([])
      expect((await t.store.vector([t.acme])).logs.get(t.acme)?.revision).toBe(1)
    })

    test('keeps revisions contiguous when writers race', async () => {
      const writes = Array.from({ length: 20 }, (_, i) => t.write(t.acme, put(`doc:${i}#viewer@user:a`)))
      const revisions = (await Promise.all(writes)).map((w) => w.position.revision)
      expect(revisions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
      expect((await t.store.entries([{ log: t.acme, from: 0, to: 20 }], 100)).map((e) => e.revision)).toEqual(
        Array.from({ length: 20 }, (_, i) => i + 1),
      )
    })

    test('deletes what a racing writer had committed first', async () => {
      await Promise.all(Array.from({ length: 10 }, () => t.write(t.acme, put('doc:1#viewer@user:a'))))
      await Promise.all([t.write(t.acme, drop('doc:1#viewer@user:a')), t.write(t.acme, drop('doc:1#viewer@user:a'))])
      expect(await t.subjects('doc:1', 'viewer')).toEqual([])
    })

    describe('that may let nobody in', () => {
      const leave = (user: string) =>
        t.store.write(t.acme, [{ kind: 'membership', user, membership: null }], { context, keepsSuspension: true })
      const held: [string, Change][] = [
        ['a tuple', put('doc:1#viewer@user:a')],
        ['a tuple that expires later', put('doc:1#viewer@user:a', 9_999_999_999_999)],
        ['a tuple with a condition', putIf('doc:1#viewer@user:a', 'open')],
        ['a place in a group', put('group:g#member@user:a')],
        ['a role', grant('g1', 'reader', 'user:a')],
      ]

      test.each(held)('ends no membership that keeps %s from counting, until that is gone', async (_name, change) => {
        for (const status of ['suspended', 'invited'] as const) {
          await t.write(t.acme, member('a', 'admin', status), change)
          const { logs } = await t.store.vector([t.acme])
          await expect(leave('a')).rejects.toEqual(code('conflict'))
          expect((await t.store.vector([t.acme])).logs).toEqual(logs)
          await t.write(t.acme, { ...change, op: 'delete' } as Change)
          expect(await leave('a')).toMatchObject({ changed: true })
        }
      })

      test('ends one of somebody who holds nothing that counts, whatever others hold', async () => {
        await t.write(t.acme, member('a', 'admin', 'suspended'), put('doc:1#viewer@user:b'), put('doc:2#viewer@user:*'))
        await t.write(t.acme, grant('g1', 'reader', 'user:ab'), put('doc:1#viewer@user:a', 1_000))
        expect(await leave('a')).toMatchObject({ changed: true })
        expect(await leave('a')).toMatchObject({ changed: false })
      })

      test('ends an active one: its user is a guest from then on', async () => {
        await t.write(t.acme, member('a', 'admin'), put('doc:1#viewer@user:a'), grant('g1', 'reader', 'user:a'))
        expect(await leave('a')).toMatchObject({ changed: true })
      })

      test('ends none for which a tuple is written meanwhile, whichever comes first', async () => {
        for (let at = 0; at < 10; at += 1) {
          const user = `u${at}`
          await t.write(t.acme, member(user, 'viewer'), put(`doc:1#viewer@user:${user}`))
          const [, left] = await Promise.allSettled([t.write(t.acme, member(user, 'viewer', 'suspended')), leave(user)])
          const row = await t.read({ log: t.acme, kind: 'membership', user })
          // Suspended first: it stays. Ended first: the other write made a new one.
          expect([left.status === 'fulfilled' || left.reason.code, row]).toEqual([
            expect.toBeOneOf([true, 'conflict']),
            expect.objectContaining({ membership: { role: 'viewer', status: 'suspended' } }),
          ])
        }
      })
    })

    test('refuses an organization that does not exist', async () => {
      await expect(t.write(t.id('nowhere'), put('doc:1#viewer@user:a'))).rejects.toEqual(code('organization_unknown'))
    })

    test.each([
      ['an object without a type', put('x:1#viewer@user:a'), { object: '1' }],
      ['an empty id', put('x:1#viewer@user:a'), { object: 'doc:' }],
      ['a wildcard as an object', put('x:1#viewer@user:a'), { object: 'doc:*' }],
      ['a hash in an id', put('x:1#viewer@user:a'), { object: 'doc:1#x' }],
      ['a space in an id', put('x:1#viewer@user:a'), { subject: 'user:a b' }],
      ['a space in a relation', put('x:1#viewer@user:a'), { relation: 'vie\u00a0wer' }],
      ['a control byte', put('x:1#viewer@user:a'), { subject: 'user:a\u0000' }],
      ['an id of 513 bytes', put('x:1#viewer@user:a'), { object: `doc:x${'é'.repeat(256)}` }],
      ['a tier of the organization', put('x:1#viewer@user:a'), { object: 'organization:acme', relation: 'owner' }],
      ['active_member', put('x:1#viewer@user:a'), { object: 'organization:other', relation: 'active_member' }],
    ])('refuses %s, naming its place, and applies nothing', async (_, change, wrong) => {
      if (change.kind !== 'tuple') throw new Error('not a tuple')
      const bad: Change = { ...change, tuple: { ...change.tuple, ...wrong } }
      await expect(t.write(t.acme, put('doc:1#viewer@user:a'), bad)).rejects.toMatchObject({
        code: 'request_invalid',
        issues: [{ place: '/1' }],
      })
      expect(await t.subjects('doc:1', 'viewer')).toEqual([])
    })

    test('refuses a batch that names one tuple twice', async () => {
      await expect(t.write(t.acme, put('doc:1#viewer@user:a'), drop('doc:1#viewer@user:a'))).rejects.toEqual(
        code('request_invalid'),
      )
    })

    test('refuses a change that belongs to another log', async () => {
      await expect(t.write(t.acme, organization(t.id('other')))).rejects.toEqual(code('request_invalid'))
      await expect(t.write(ENVIRONMENT, put('doc:1#viewer@user:a'))).rejects.toEqual(code('request_invalid'))
      await expect(t.write(TOKENS, { kind: 'clear' })).rejects.toEqual(code('request_invalid'))
    })

    test('accepts ids with colons, at signs and slashes', async () => {
      await t.write(t.acme, put('doc:a:b@c/d#viewer@user:x@y.example'))
      expect(await t.subjects('doc:a:b@c/d', 'viewer')).toEqual(['user:x@y.example'])
    })
  })

  describe('preconditions', () => {
    const guarded = (text: string, exists: boolean) =>
      t.store.write(t.acme, [put('doc:2#viewer@user:a')], {
        context,
        preconditions: [{ tuple: parseTuple(text), exists }],
      })

    test('lets the write through when they hold', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a'))
      expect(await guarded('doc:1#viewer@user:a', true)).toMatchObject({ position: { revision: 2 }, changed: true })
      expect(await guarded('doc:3#viewer@user:a', false)).toMatchObject({ position: { revision: 2 }, changed: false })
    })

    test('refuses the whole write when one does not hold', async () => {
      await expect(guarded('doc:1#viewer@user:a', true)).rejects.toEqual(code('precondition_failed'))
      expect(await t.subjects('doc:2', 'viewer')).toEqual([])
    })

    test('counts an expired tuple as absent', async () => {
      await t.write(t.acme, put('doc:1#viewer@user:a', 1))
      await expect(guarded('doc:1#viewer@user:a', true)).rejects.toEqual(code('precondition_failed'))
    })
  })
}
