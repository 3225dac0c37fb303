/** Why: the chain of grants that allowed it, or the tuples any one of which would have. */
import { beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp, Reason } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { parseTuple } from '../../../../pdp/shared/domain/names.ts'
import { REASONS } from '../../../../pdp/shared/domain/reasons.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { given, grant, member, organization, put } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type doc
  relations
    define parent: [doc]
    define banned: [user]
    define signed: [user]
    define editor: [user, group#member]
    define viewer: [user] or editor or viewer from parent
    define reader: viewer but not banned
    define signer: viewer and signed
`

describe('explain', () => {
  let store: Store
  let pdp: Pdp
  const why = async (relation: string, resource: string): Promise<Omit<Reason, 'message'> | undefined> => {
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation, resource }],
      explain: true,
    })
    const [result] = permissions
    if (result?.reason === undefined) return undefined
    const { message, ...reason } = result.reason
    expect([reason.code, message]).toEqual([result.reasonCode, REASONS[reason.code]])
    return reason
  }
  beforeEach(async () => {
    store = memoryStore()
    pdp = createPdp({ store })
    await given(store, 'acme')
    const manifest = {
      app: 'docs',
      audiences: [],
      permissions: { 'docs:sign': '' },
      roles: { signer: { name: 'S', permissions: ['docs:sign'] } },
      model: MODEL,
    }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  })

  test('is absent unless asked for', async () => {
    const { permissions } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation: 'viewer', resource: 'doc:1' }],
    })
    expect(permissions[0]).not.toHaveProperty('reason')
  })

  test('names the tuple', async () => {
    await given(store, 'acme', put('thing:1#r@user:ann'))
    expect(await why('r', 'thing:1')).toEqual({ code: 'tuple', path: [{ tuple: 'thing:1#r@user:ann' }], missing: [] })
  })

  test('names every group on the way, from the resource down to the subject', async () => {
    await given(
      store,
      'acme',
      put('thing:1#r@group:b#member'),
      put('group:b#member@group:a#member'),
      put('group:a#member@user:ann'),
    )
    expect(await why('r', 'thing:1')).toEqual({
      code: 'group',
      path: [
        { tuple: 'thing:1#r@group:b#member' },
        { tuple: 'group:b#member@group:a#member' },
        { tuple: 'group:a#member@user:ann' },
      ],
      missing: [],
    })
  })

  test('names the rules of the model and the tuples that they lean on', async () => {
    await given(
      store,
      'acme',
      put('doc:1#parent@doc:0'),
      put('doc:0#editor@group:a#member'),
      put('group:a#member@user:ann'),
    )
    expect(await why('viewer', 'doc:1')).toEqual({
      code: 'model',
      path: [
        { rule: 'doc:1#viewer: viewer from parent' },
        { tuple: 'doc:1#parent@doc:0' },
        { rule: 'doc:0#viewer: editor' },
        { tuple: 'doc:0#editor@group:a#member' },
        { tuple: 'group:a#member@user:ann' },
      ],
      missing: [],
    })
  })

  test('names the membership', async () => {
    await given(store, 'acme', member('ann', 'admin'))
    expect(await why('admin', 'organization:acme')).toEqual({
      code: 'membership',
      path: [{ member: 'organization:acme#admin@user:ann' }],
      missing: [],
    })
  })

  test('names the role grant and the group that holds it', async () => {
    await given(store, ENVIRONMENT, organization('top'), organization('acme', 'top'))
    await given(store, 'top', grant('g1', 'signer', 'group:staff', 'docs'), put('group:staff#member@user:ann'))
    expect(await why('docs:sign', 'app:docs')).toEqual({
      code: 'role_rolled_down',
      path: [{ role_grant: 'g1' }, { tuple: 'group:staff#member@user:ann' }],
      missing: [],
    })
  })

  test.each([
    ['viewer', ['doc:1#viewer@user:ann', 'doc:1#editor@user:ann']],
    ['reader', ['doc:1#viewer@user:ann', 'doc:1#editor@user:ann']],
    ['signer', []],
  ])('names what is missing for %s, any one of which would do', async (relation, missing) => {
    const reason = await why(relation, 'doc:1')
    expect(reason).toMatchObject({ code: 'none', path: [], missing })
    for (const text of missing) {
      const { tuple } = { tuple: { ...parseTuple(text), expiresAtMs: null } }
      await given(store, 'acme', { kind: 'tuple', op: 'write', tuple })
      expect(await pdp.can('acme', user('ann'), relation, 'doc:1')).toBe(true)
      await given(store, 'acme', { kind: 'tuple', op: 'delete', tuple })
    }
  })

  test('names the steps that lead to a missing tuple, and none where the tuple is of what was asked', async () => {
    await given(store, 'acme', put('doc:1#parent@doc:0'))
    const { missing = [], reached } = (await why('viewer', 'doc:1')) ?? {}
    expect(missing).toContain('doc:0#editor@user:ann')
    expect(reached).toEqual(
      expect.arrayContaining([
        { rule: 'doc:1#viewer: viewer from parent' },
        { tuple: 'doc:1#parent@doc:0' },
        { rule: 'doc:0#viewer: editor' },
      ]),
    )
    expect(await why('signed', 'doc:1')).not.toHaveProperty('reached')
  })

  test('names the one part of an intersection that is missing', async () => {
    await given(store, 'acme', put('doc:1#viewer@user:ann'))
    expect((await why('signer', 'doc:1'))?.missing).toEqual(['doc:1#signed@user:ann'])
  })

  test('names nothing where a tuple would not help', async () => {
    await given(store, 'acme', put('doc:1#viewer@user:ann'), put('doc:1#banned@user:ann'))
    expect(await why('reader', 'doc:1')).toMatchObject({ code: 'none', path: [], missing: [] })
    expect(await why('writer', 'doc:1')).toMatchObject({ code: 'unknown_relation', path: [], missing: [] })
    await given(store, 'acme', member('ann', 'owner', 'suspended'))
    expect(await why('viewer', 'doc:1')).toMatchObject({ code: 'membership_suspended', path: [], missing: [] })
  })

  test('says the same from a cold and from a warm cache', async () => {
    await given(store, 'acme', put('doc:1#editor@group:a#member'), put('group:a#member@user:ann'))
    const warm = await why('viewer', 'doc:1').then(() => why('viewer', 'doc:1'))
    const cold = await createPdp({ store }).decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation: 'viewer', resource: 'doc:1' }],
      explain: true,
    })
    expect(cold.permissions[0]?.reason).toEqual({ ...warm, message: REASONS.model })
  })
})
