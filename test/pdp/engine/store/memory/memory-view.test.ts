/** One view of the memory store answers question after question; a question after a write, or at another time, must not get the old one's answer. */
import { describe, expect, it } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { context, drop, member, organization, put } from '../../../../support/tuples.ts'

const START_MS = Date.parse('2026-01-01T00:00:00Z')

function world() {
  const time = { nowMs: START_MS }
  const store = memoryStore({ clock: () => time.nowMs })
  const pdp = createPdp({ store })
  const canView = (organization = 'acme') => pdp.can(organization, user('alice'), 'viewer', 'doc:1')
  const write = (log: string, ...changes: Parameters<typeof store.write>[1]) => store.write(log, changes, { context })
  return { time, store, pdp, canView, write }
}

describe('the view of the memory store', () => {
  it('shows an organization and a relationship that were written after a denial', async () => {
    const { canView, write } = world()
    expect(await canView()).toBe(false)
    await write(ENVIRONMENT, organization('acme'))
    expect(await canView()).toBe(false)
    await write('acme', put('doc:1#viewer@user:alice'))
    expect(await canView()).toBe(true)
    await write('acme', drop('doc:1#viewer@user:alice'))
    expect(await canView()).toBe(false)
  })

  it('shows a membership that was suspended after an allow', async () => {
    const { canView, write } = world()
    await write(ENVIRONMENT, organization('acme'))
    await write('acme', put('doc:1#viewer@user:alice'), member('alice', 'member'))
    expect(await canView()).toBe(true)
    await write('acme', member('alice', 'member', 'suspended'))
    expect(await canView()).toBe(false)
  })

  it('shows a model that was written after an allow', async () => {
    const { canView, write } = world()
    await write(ENVIRONMENT, organization('acme'))
    await write('acme', put('doc:1#viewer@user:alice'))
    expect(await canView()).toBe(true)
    const model =
      'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define owner: [user]\n    define viewer: owner\n'
    await write(ENVIRONMENT, {
      kind: 'manifest',
      manifest: { app: 'docs', audiences: [], permissions: {}, roles: {}, model },
    })
    expect(await canView()).toBe(false)
  })

  it('reads the clock for each question where something expires', async () => {
    const { time, canView, write } = world()
    await write(ENVIRONMENT, organization('acme'))
    await write('acme', put('doc:1#viewer@user:alice', START_MS + 1_000))
    expect(await canView()).toBe(true)
    time.nowMs += 999
    expect(await canView()).toBe(true)
    time.nowMs += 1
    expect(await canView()).toBe(false)
  })

  it('tells no question until when the answer of another one holds', async () => {
    const { pdp, write } = world()
    await write(ENVIRONMENT, organization('acme'))
    await write('acme', put('doc:1#viewer@user:alice', START_MS + 1_000), put('doc:2#viewer@user:bob'))
    const asked = (id: string, resource: string) =>
      pdp.decide({ organization: 'acme', subject: user(id), permissions: [{ relation: 'viewer', resource }] })
    expect((await asked('alice', 'doc:1')).validUntilMs).toBe(START_MS + 1_000)
    expect((await asked('bob', 'doc:2')).validUntilMs).toBe(null)
  })

  it('is the old one after a write that was refused', async () => {
    const { store, canView, write } = world()
    await write(ENVIRONMENT, organization('acme'))
    await write('acme', put('doc:1#viewer@user:alice'))
    expect(await canView()).toBe(true)
    const refused = store.write('acme', [{ kind: 'entitlement', key: '', entitlement: null }] as never, { context })
    await expect(refused).rejects.toThrow()
    expect(await canView()).toBe(true)
  })
})
