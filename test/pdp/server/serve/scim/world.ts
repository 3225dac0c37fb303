/** A PDP with two organizations, and a directory for each. Files share a worker and its modules: each opens its own. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { createIsSignedIn } from '../../../../../pdp/identity/issuer/sign-in-validity.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Json, type SendOptions, type Served, seedAcme, serve } from '../harness.ts'

export let served: Served
/** Bound to acme, with nothing but the scope scim. */
export let directory: string
export let other: string
export let name: string

/** For the tests of the file that calls it. */
export function openWorld(): void {
  beforeAll(async () => {
    served = await serve()
    await seedAcme(served)
    for (const [id, parent] of [
      ['beta', null],
      ['acme-eu', 'acme'],
    ] as const)
      await served.store.write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }], {
        context: CONTEXT,
      })
    await served.store.write(
      ENVIRONMENT,
      [{ kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] } }],
      { context: CONTEXT },
    )
    directory = await served.manager({ client: 'acme-directory', organization: 'acme', scopes: ['scim'] })
    other = await served.manager({ client: 'beta-directory', organization: 'beta', scopes: ['scim'] })
  })
  afterAll(() => served.close())
  beforeEach(() => {
    name = `p-${randomUUID()}`
  })
}

export const TYPE = { 'content-type': 'application/scim+json' }
type Options = SendOptions & { as?: string }
export const send = (method: string, path: string, { as = directory, headers, ...options }: Options = {}) =>
  served.send(method, `/scim/v2${path}`, {
    token: as,
    headers: { ...(options.body === undefined ? {} : TYPE), ...headers },
    ...options,
  })
export const at = (kind: 'Users' | 'Groups', id: string): string => `/${kind}/${encodeURIComponent(id)}`
export async function create(kind: 'Users' | 'Groups', body: object, as = directory): Promise<Json> {
  const answer = await send('POST', `/${kind}`, { as, body })
  expect([answer.status, answer.body.detail]).toEqual([201, undefined])
  return answer.body
}
export const user = (more: object = {}, as = directory): Promise<Json> =>
  create('Users', { userName: `${name}@x.test`, name: { givenName: 'Ann', familyName: 'Lee' }, ...more }, as)
export const group = (more: object = {}, as = directory): Promise<Json> =>
  create('Groups', { displayName: name, ...more }, as)
export const patch = (path: string, ...operations: readonly object[]) =>
  send('PATCH', path, { body: { Operations: operations } })
export const find = async (kind: 'Users' | 'Groups', query: string, as = directory): Promise<Json> =>
  (await send('GET', `/${kind}?${query}`, { as })).body
export const membership = async (id: string, org = 'acme') => {
  const { rows } = await served.store.rows([org], [{ log: org, kind: 'membership', user: id }])
  return rows.map((row) => ('membership' in row ? row.membership : null))[0]
}
export const held = async (id: string) =>
  (await served.pdp.held({ organization: 'acme', subject: { type: 'user', id }, app: null })).permissions
/** Stores an address as an earlier version may have done. */
export const storeAddress = (id: string, address: string) =>
  served.sql.query(
    `update provisioned set document = jsonb_set(document::jsonb, '{emails,0,value}', to_jsonb($2::text)) where id = $1`,
    [id, address],
  )
export const mayActSince = (id: string, seconds: number) => createIsSignedIn(served.sql)(id, seconds)
