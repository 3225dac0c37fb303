/** Two tenants, an organization below one of them, a client bound to it, and an administrator. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

class TenantWorld {
  served!: Served
  admin = ''
  /** Bound to acme, with every scope; it holds no role. */
  tenant = ''
  /** Of acme's namespace, another one for each test. */
  name = ''
  count = 0

  readonly write = (log: string, changes: Parameters<Served['store']['write']>[1]) =>
    this.served.store.write(log, changes, { context: CONTEXT })

  readonly send = async (token: string, method: string, path: string, body?: object, headers: Json = {}) => {
    const answer = await this.served.send(method, path, { token, headers, ...(body === undefined ? {} : { body }) })
    return { status: answer.status, body: answer.body, etag: answer.headers.get('etag') }
  }

  /** How often the tokens of a client were ended. */
  readonly revocations = async (id: string): Promise<number> => {
    const change = `jsonb_build_object('kind', 'token', 'by', 'client', 'id', $1::text)`
    const rows = await this.served.sql.query(
      `select 1 from change_log where organization_id = '#tokens' and change = ${change}`,
      [id],
    )
    return rows.length
  }
}

export function openTenantWorld(options: Parameters<typeof serve>[0] = {}): TenantWorld {
  const world = new TenantWorld()
  beforeAll(async () => {
    world.served = await serve(options)
    await seedAcme(world.served)
    for (const [id, parent] of [
      ['beta', null],
      ['acme-eu', 'acme'],
    ] as const)
      await world.write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }])
    const auditor = { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] }
    await world.write(ENVIRONMENT, [{ kind: 'role', key: 'auditor', role: auditor }])
    world.admin = await world.served.manager()
    world.tenant = await world.served.manager({ client: 'acme-admin', organization: 'acme' })
  })
  afterAll(() => world.served.close())
  beforeEach(() => {
    world.name = `acme~${++world.count}`
  })
  return world
}

export const client = (organization: string | null, rest: object = {}) => ({
  grant_types: ['client_credentials'],
  ...(organization === null ? {} : { organization }),
  ...rest,
})
