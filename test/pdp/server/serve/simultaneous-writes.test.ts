/** Two who do the same at once, many times: it is done once, and who comes second is told. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { effort } from '../../../support/effort.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from './harness.ts'

const ROUNDS = effort({ short: 2, long: 50 })
let served: Served
let admin: string
let scim: string
let receiver: string
beforeAll(async () => {
  served = await serve({ mailer: { send: async () => undefined } })
  await seedAcme(served)
  const role = { key: 'nothing', name: 'Nothing', permissions: [] }
  await served.store.write(ENVIRONMENT, [{ kind: 'role', key: 'nothing', role }], { context: CONTEXT })
  admin = await served.manager()
  scim = await served.manager({ client: 'directory', organization: 'acme', scopes: ['scim'] })
  receiver = await served.manager({ client: 'receiver', scopes: ['ssf.manage'] })
})
afterAll(() => served.close())

type Request = {
  readonly as?: () => string
  readonly method: string
  readonly path: string
  readonly body?: object | string
  readonly headers?: { readonly [name: string]: string }
}
async function send({ as = () => admin, method, path, body, headers = {} }: Request) {
  const type =
    typeof body === 'string' ? 'text/plain' : path.startsWith('/scim') ? 'application/scim+json' : 'application/json'
  const response = await fetch(served.url + path, {
    method,
    headers: { authorization: `Bearer ${as()}`, ...(body === undefined ? {} : { 'content-type': type }), ...headers },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  let read: Json = null
  try {
    read = JSON.parse(text)
  } catch {}
  return { status: response.status, headers: response.headers, body: read }
}
const count = async (from: string, x: string): Promise<number> =>
  (await served.sql.query(`select 1 from ${from}`, [x])).length
const putUser = (id: string) => served.directory.putUser({ id, email: null, emailVerified: false, name: null }, CONTEXT)
const statement = (text: string) => async (x: string) => {
  await putUser(x)
  await served.sql.query(text, [x])
}

type Twice = {
  readonly what: string
  seed?(x: string): Promise<unknown>
  readonly both: (x: string, n: number) => Request
  /** In order. */
  readonly statuses: readonly number[]
  /** What there is afterwards: a `from` and its rows. */
  readonly left: readonly [from: string, rows: number]
}
const twice = (what: string, both: Twice['both'], rest: Omit<Twice, 'what' | 'both'>): Twice => ({
  what,
  both,
  ...rest,
})
const del =
  (path: (x: string) => string) =>
  (x: string): Request => ({ method: 'DELETE', path: path(x) })
const issuerOf = (x: string) => `https://${x.replace('.', '-')}.example`
const provider = (x: string) => ({ issuer: issuerOf(x), client_id: 'x', name: 'X', token_endpoint_auth_method: 'none' })
const CREATED = { 'if-none-match': '*' }

const ALL: readonly Twice[] = [
  twice('an authenticator is made', (x) => ({ method: 'POST', path: `/v1/users/${x}/totp` }), {
    seed: putUser,
    statuses: [200, 409],
    left: ['authenticator where user_id = $1', 1],
  }),
  twice(
    'an authenticator is removed',
    del((x) => `/v1/users/${x}/totp`),
    {
      seed: statement("insert into authenticator (user_id, secret_sealed, used_step) values ($1, 'x', 0)"),
      statuses: [204, 404],
      left: ['authenticator where user_id = $1', 0],
    },
  ),
  twice(
    'passkeys are removed',
    del((x) => `/v1/users/${x}/passkeys`),
    {
      seed: statement(
        `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
       values ($1, $1, 'x', '{}', 0, false, '{}')`,
      ),
      statuses: [204, 404],
      left: ['passkey where user_id = $1', 0],
    },
  ),
  twice(
    'a session is ended',
    del((x) => `/v1/sessions/${x}`),
    {
      seed: statement(
        `insert into oidc_record (kind, id, uid, payload, expires_at)
       values ('Session', $1, $1, jsonb_build_object('accountId', $1::text, 'uid', $1::text), now() + interval '1 hour')`,
      ),
      statuses: [204, 404],
      left: ["change_log where change @> jsonb_build_object('by', 'session', 'id', $1::text)", 1],
    },
  ),
  twice(
    'people are imported',
    (x) => ({
      ...{ method: 'POST', path: '/v1/users:import', headers: { 'content-type': 'application/x-ndjson' } },
      body: `{"id": "${x}"}\n{"id": "${x}-more"}`,
    }),
    { statuses: [200, 400], left: ['user_account where starts_with(user_id, $1)', 2] },
  ),
  twice(
    'relationships are imported',
    (x) => ({
      ...{ method: 'POST', path: '/v1/organizations/acme/relationships:import' },
      body: `invoice:${x}#viewer@user:bob`,
    }),
    { statuses: [200, 200], left: ["change_log where change -> 'tuple' ->> 'object' = 'invoice:' || $1", 1] },
  ),
  twice(
    'a role is granted in the environment',
    (x) => ({
      ...{ method: 'POST', path: '/v1/role-grants' },
      body: { role: 'nothing', subject: `user:${x}` },
    }),
    { seed: putUser, statuses: [200, 200], left: ["role_grant where subject = 'user:' || $1", 1] },
  ),
  twice(
    'a grant in the environment is taken back',
    del((x) => `/v1/role-grants/${x}`),
    {
      seed: async (x) => {
        const grant = { id: x, app: null, role: 'nothing', subject: `user:${x}` }
        await served.store.write(ENVIRONMENT, [{ kind: 'role_grant', op: 'write', grant }], { context: CONTEXT })
      },
      statuses: [204, 404],
      left: ['role_grant where grant_id = $1', 0],
    },
  ),
  twice(
    'an address is invited',
    (x) => ({
      ...{ method: 'POST', path: '/v1/organizations/acme/invitations' },
      body: { email: `${x}@x.example`, role: 'member' },
    }),
    { statuses: [201, 201], left: ["mailed_token where email = $1 || '@x.example'", 1] },
  ),
  twice(
    'an invitation is withdrawn',
    del((x) => `/v1/organizations/acme/invitations/${x}`),
    {
      seed: (x) =>
        served.sql.query(
          `insert into mailed_token (digest, kind, email, invitation_id, organization_id, role, roles, invited_by, created_at, expires_at)
         values ($1, 'invitation', $1 || '@x.example', $1, 'acme', 'member', '[]', 'service:admin', now(), now() + interval '1 day')`,
          [x],
        ),
      statuses: [204, 404],
      left: ["change_log where change @> jsonb_build_object('kind', 'invitation', 'id', $1::text)", 1],
    },
  ),
  twice(
    'a provider is registered',
    (x) => ({
      ...{ method: 'PUT', path: `/v1/identity-providers/${x.replace('.', '-')}`, headers: CREATED },
      body: provider(x),
    }),
    { statuses: [201, 412], left: ["identity_provider where provider_id = replace($1, '.', '-')", 1] },
  ),
  twice(
    'two providers have one issuer',
    (x, n) => ({
      ...{ method: 'PUT', path: `/v1/identity-providers/${x.replace('.', '-')}-${n}` },
      body: provider(x),
    }),
    { statuses: [201, 409], left: ["identity_provider where starts_with(provider_id, replace($1, '.', '-'))", 1] },
  ),
  twice(
    'a trusted issuer is deleted',
    del((x) => `/v1/trusted-issuers/${encodeURIComponent(issuerOf(x))}`),
    {
      seed: (x) => served.sql.query("insert into trusted_issuer (issuer, document) values ($1, '{}')", [issuerOf(x)]),
      statuses: [204, 404],
      left: ["trusted_issuer where issuer like '%' || replace($1, '.', '-') || '%'", 0],
    },
  ),
  twice(
    'a directory brings a user',
    (x) => ({
      ...{ as: () => scim, method: 'POST', path: '/scim/v2/Users' },
      body: { userName: `${x}@x.example` },
    }),
    { statuses: [201, 409], left: ["user_account where email = $1 || '@x.example'", 1] },
  ),
  twice(
    'a directory brings a group',
    (x) => ({
      ...{ as: () => scim, method: 'POST', path: '/scim/v2/Groups' },
      body: { displayName: x },
    }),
    { statuses: [201, 409], left: ["provisioned where kind = 'Group' and name = $1", 1] },
  ),
]

describe('of two at once', () => {
  test.each(ALL.map((one, i) => [one.what, one, i] as const))('when %s', async (_, one, i) => {
    for (let round = 0; round < ROUNDS; round++) {
      const x = `t${i}.${round}`
      await one.seed?.(x)
      const statuses = (await Promise.all([0, 1].map((n) => send(one.both(x, n))))).map(({ status }) => status)
      const [from, rows] = one.left
      expect([x, statuses.toSorted(), await count(from, x)]).toEqual([x, one.statuses, rows])
    }
  })

  test('when the token hook is set, one sets it, and one changes what both have read', async () => {
    const path = '/v1/token-hook'
    const hook = (n: number) => ({ url: `https://hook${n}.example`, secret: 'a-secret-of-16-or-more' })
    const both = async (headers: Request['headers']) =>
      (await Promise.all([0, 1].map((n) => send({ method: 'PUT', path, body: hook(n), headers: headers ?? {} }))))
        .map(({ status }) => status)
        .toSorted()
    for (let round = 0; round < ROUNDS; round++) {
      expect(await both(CREATED)).toEqual([204, 412])
      const etag = String((await send({ method: 'GET', path })).headers.get('etag'))
      expect(await both({ 'if-match': etag })).toEqual([204, 412])
      expect(await count('token_hook where $1 = $1::text', 'x')).toBe(1)
      await send({ method: 'DELETE', path })
    }
  })

  test('who each change a group or a user of a directory, neither change is lost, and If-Match holds', async () => {
    const as = () => scim
    for (let round = 0; round < ROUNDS; round++) {
      const made = async (kind: string, body: object) =>
        (await send({ as, method: 'POST', path: `/scim/v2/${kind}`, body })).body
      const users = await Promise.all([0, 1].map((n) => made('Users', { userName: `g${round}-${n}@x.example` })))
      const group = await made('Groups', { displayName: `group ${round}` })
      const path = `/scim/v2/Groups/${encodeURIComponent(group.id)}`
      const add = (id: string, headers = {}) => {
        const Operations = [{ op: 'add', path: 'members', value: [{ value: id }] }]
        return send({ as, method: 'PATCH', path, body: { Operations }, headers })
      }
      expect((await Promise.all(users.map(({ id }) => add(id)))).map(({ status }) => status)).toEqual([200, 200])
      const { members, meta } = (await send({ as, method: 'GET', path })).body
      expect(members.map(({ value }: Json) => value).toSorted()).toEqual(users.map(({ id }) => id).toSorted())
      const put = (n: number) =>
        send({
          as,
          method: 'PUT',
          path,
          body: { displayName: `g ${round} ${n}` },
          headers: { 'if-match': meta.version },
        })
      expect((await Promise.all([put(0), put(1)])).map(({ status }) => status).toSorted()).toEqual([200, 412])
      const user = `/scim/v2/Users/${encodeURIComponent(users[0].id)}`
      const patches = [
        { op: 'replace', path: 'active', value: false },
        { op: 'replace', path: 'title', value: 'Chief' },
      ].map((one) => send({ as, method: 'PATCH', path: user, body: { Operations: [one] } }))
      await Promise.all(patches)
      expect((await send({ as, method: 'GET', path: user })).body).toMatchObject({ active: false, title: 'Chief' })
      const gone = [0, 1].map(() => send({ as, method: 'DELETE', path: user }))
      expect((await Promise.all(gone)).map(({ status }) => status).toSorted()).toEqual([204, 404])
    }
  })

  test('who each change a stream, neither change is lost; one deletes it; and no more are made than may be', async () => {
    const as = () => receiver
    const path = '/ssf/stream'
    for (let round = 0; round < ROUNDS; round++) {
      const { stream_id } = (await send({ as, method: 'POST', path, body: {} })).body
      const changes = [{ description: 'new' }, { subject_format: 'iss_sub' }]
      const changed = changes.map((body) => send({ as, method: 'PATCH', path, body: { stream_id, ...body } }))
      expect((await Promise.all(changed)).map(({ status, body }) => [status, body.detail])).toEqual([
        [200, undefined],
        [200, undefined],
      ])
      const read = await send({ as, method: 'GET', path: `${path}?stream_id=${stream_id}` })
      expect(read.body).toMatchObject({ description: 'new', subject_format: 'iss_sub' })
      const gone = [0, 1].map(() => send({ as, method: 'DELETE', path: `${path}?stream_id=${stream_id}` }))
      expect((await Promise.all(gone)).map(({ status }) => status).toSorted()).toEqual([204, 404])
    }
    await served.sql.query(
      `insert into signal_stream (stream_id, client_id, status, cursor_seq, subject_format)
       select 's' || n, 'receiver', 'enabled', 0, 'complex' from generate_series(1, 98) n`,
    )
    const made = await Promise.all(Array.from({ length: 5 }, () => send({ as, method: 'POST', path, body: {} })))
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 201, 409, 409, 409])
  })
})
