import { exportJWK, generateKeyPair } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served, serve } from '../harness.ts'

let served: Served
let admin: string
beforeAll(async () => {
  served = await serve()
  admin = await served.manager()
  for (const id of ['acme', 'beta']) {
    const organization = { id, name: id, parent: null }
    await served.store.write(ENVIRONMENT, [{ kind: 'organization', id, organization }], { context: CONTEXT })
  }
})
afterAll(() => served.close())

const send = (method: string, path: string, body?: unknown, token = admin) =>
  served.send(method, path, { token, ...(body === undefined ? {} : { body }) })

describe('/v1/token-hook', () => {
  const hook = { url: 'https://hook.example/x', secret: 'a-secret-of-the-hook' }

  test('is put and deleted, and keeps its secret sealed', async () => {
    expect((await send('PUT', '/v1/token-hook', hook)).status).toBe(204)
    expect(await served.sql.query('select 1 from token_hook h where strpos(h::text, $1) > 0', [hook.secret])).toEqual(
      [],
    )
    expect((await send('DELETE', '/v1/token-hook')).status).toBe(204)
    expect(await served.sql.query('select 1 from token_hook')).toEqual([])
  })

  test.each([
    ['plain http', { ...hook, url: 'http://hook.example/' }],
    ['a password in the URL', { ...hook, url: 'https://a:b@hook.example/' }],
    ['another scheme', { ...hook, url: 'file:///etc/passwd' }],
    ['no URL', { secret: hook.secret }],
    ['a short secret', { ...hook, secret: 'short' }],
    ['an unknown member', { ...hook, timeout: 1 }],
  ])('is refused with %s', async (_, body) => {
    expect((await send('PUT', '/v1/token-hook', body)).status).toBe(400)
  })

  test('needs its scope and a client of the environment', async () => {
    const other = await served.manager({ client: 'other', scopes: ['clients:write'] })
    const bound = await served.manager({ client: 'bound', organization: 'acme' })
    for (const token of [other, bound]) expect((await send('PUT', '/v1/token-hook', hook, token)).status).toBe(403)
  })
})

describe('sessions', () => {
  test('of a person are ended, and an unknown person or session is said to be unknown', async () => {
    await served.directory.putUser({ id: 'ann', email: null, emailVerified: false, name: null }, CONTEXT)
    await served.sql.query(
      `insert into oidc_record (kind, id, payload, uid) values ('Session', 'x', '{"accountId": "ann"}', 'uid-1')`,
    )
    const { status, body } = await send('POST', '/v1/users/ann/sessions:revoke')
    expect([status, body]).toEqual([200, { sessions: ['uid-1'] }])
    expect((await send('POST', '/v1/users/nobody/sessions:revoke')).status).toBe(404)
    expect((await send('DELETE', '/v1/sessions/uid-1')).status).toBe(404)
  })

  test('are ended one by one, in the log with who did it', async () => {
    await served.sql.query(
      `insert into oidc_record (kind, id, payload, uid) values ('Session', 'y', '{"accountId": "ann"}', 'uid-2')`,
    )
    expect((await send('DELETE', '/v1/sessions/uid-2')).status).toBe(204)
    const [entry] = await served.sql.query<{ change: object; actor: string }>(
      "select change, actor from change_log where organization_id = '#tokens' order by revision desc limit 1",
    )
    expect(entry).toEqual({ change: { kind: 'token', by: 'session', id: 'uid-2' }, actor: 'service:admin' })
  })

  test('need their scope and a client of the environment', async () => {
    const bound = await served.manager({ client: 'bound', organization: 'acme' })
    expect((await send('DELETE', '/v1/sessions/uid-2', undefined, bound)).status).toBe(403)
  })
})

describe('the audit trail of the environment', () => {
  const changes = async () => {
    const { logs } = await served.store.vector([ENVIRONMENT])
    const after = (logs.get(ENVIRONMENT)?.revision ?? 0) - 1
    return (await send('GET', `/v1/changes?after=${after}`)).body.items
  }
  const entry = (change: object) => ({
    revision: expect.any(Number),
    change,
    actor: 'service:admin',
    request_id: 'request-0007',
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  })
  const as7 = (method: string, path: string, body?: unknown) =>
    served.send(method, path, {
      token: admin,
      headers: { 'x-request-id': 'request-0007' },
      ...(body === undefined ? {} : { body }),
    })

  test('names who set or removed the token hook, when, and under which request', async () => {
    const url = 'https://hook.example/audit'
    await as7('PUT', '/v1/token-hook', { url: `${url}?key=hidden`, secret: 'a-secret-of-the-hook' })
    expect(await changes()).toEqual([entry({ kind: 'token_hook', id: url, op: 'write' })])
    await as7('DELETE', '/v1/token-hook')
    const removed = [entry({ kind: 'token_hook', id: url, op: 'delete' })]
    expect(await changes()).toEqual(removed)
    await as7('DELETE', '/v1/token-hook')
    expect(await changes()).toEqual(removed)
  })

  test('names who began or ceased to trust an issuer', async () => {
    const id = 'https://audited.example'
    const path = `/v1/trusted-issuers/${encodeURIComponent(id)}`
    const document = {
      jwks_uri: `${id}/jwks`,
      algorithms: ['ES256'],
      audience: 'https://api.example/',
      subject_prefix: 'audited:',
      organizations: ['acme'],
    }
    for (const status of [201, 200]) {
      expect((await as7('PUT', path, document)).status).toBe(status)
      expect(await changes()).toEqual([entry({ kind: 'trusted_issuer', id, op: 'write' })])
    }
    await as7('DELETE', path)
    const removed = [entry({ kind: 'trusted_issuer', id, op: 'delete' })]
    expect(await changes()).toEqual(removed)
    expect((await as7('DELETE', path)).status).toBe(404)
    expect(await changes()).toEqual(removed)
  })
})

test('/v1/users/{user}/passkeys are removed together, for users that have some', async () => {
  await send('PUT', '/v1/users/paula', { email: 'paula@x.example' })
  const path = '/v1/users/paula/passkeys'
  expect((await send('DELETE', path)).status).toBe(404)
  await served.sql.query(
    `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
     select 'paula ' || n, 'paula', 'x', 'x', 0, false, '{}' from generate_series(1, 2) n`,
  )
  const bound = await served.manager({ client: 'bound', organization: 'acme' })
  expect((await send('DELETE', path, undefined, bound)).status).toBe(403)
  expect((await send('DELETE', path)).status).toBe(204)
  expect((await send('DELETE', path)).status).toBe(404)
})

describe('/v1/users/{user}/totp', () => {
  const path = '/v1/users/otto/totp'
  beforeAll(() => send('PUT', '/v1/users/otto', { email: 'otto@x.example', password: 'password of otto' }))

  test('gives one authenticator, whose secret is shown once, and another one only after it was deleted', async () => {
    const made = await send('POST', path)
    expect(made.status).toBe(200)
    expect(made.body).toEqual({ secret: expect.stringMatching(/^[A-Z2-7]{32}$/), otpauth_uri: expect.any(String) })
    expect(made.body.otpauth_uri).toContain(`secret=${made.body.secret}`)
    expect(made.headers.get('cache-control')).toBe('no-store')
    expect([(await send('POST', path)).status, (await send('POST', path)).body.code]).toEqual([409, 'conflict'])
    expect(JSON.stringify((await send('GET', '/v1/users/otto')).body)).not.toContain(made.body.secret)
    expect((await send('DELETE', path)).status).toBe(204)
    expect((await send('DELETE', path)).status).toBe(404)
    expect((await send('POST', path)).body.secret).not.toBe(made.body.secret)
  })

  test('is for users that there are, and needs its scope and a client of the environment', async () => {
    for (const method of ['POST', 'DELETE']) {
      expect((await send(method, '/v1/users/nobody/totp')).status).toBe(404)
      const other = await served.manager({ client: 'other', scopes: ['clients:write'] })
      const bound = await served.manager({ client: 'bound', organization: 'acme' })
      for (const token of [other, bound]) expect((await send(method, path, undefined, token)).status).toBe(403)
    }
  })

  test('goes with its user', async () => {
    await send('PUT', '/v1/users/brief', {})
    await send('POST', '/v1/users/brief/totp')
    expect((await send('DELETE', '/v1/users/brief')).status).toBe(204)
    expect(await served.sql.query("select 1 from authenticator where user_id = 'brief'")).toEqual([])
  })
})

describe('a password that is put', () => {
  const put = (password: string) => send('PUT', '/v1/users/pat', { email: 'pat@x.example', password })
  const openSession = (uid: string) =>
    served.sql.query(
      `insert into oidc_record (kind, id, payload, uid) values ('Session', $1, '{"accountId": "pat"}', $1)`,
      [uid],
    )
  const sessions = () => served.sql.query(`select uid from oidc_record where payload ->> 'accountId' = 'pat'`)

  test('ends all sessions of its user when it is another one, in one transaction with what tells of it', async () => {
    await put('the first password')
    await openSession('pat-1')
    expect((await put('the first password')).status).toBe(200)
    expect(await sessions()).toEqual([{ uid: 'pat-1' }])
    expect((await put('the second password')).status).toBe(200)
    expect(await sessions()).toEqual([])
    const [revocation] = await served.sql.query<{ change: object; actor: string }>(
      "select change, actor from change_log where organization_id = '#tokens' order by revision desc limit 1",
    )
    expect(revocation).toEqual({ change: { kind: 'token', by: 'session', id: 'pat-1' }, actor: 'service:admin' })
    await numberEvents(served.sql)
    const [event] = await served.sql.query(
      "select type, payload from outbox where type = 'session.revoked' order by seq desc limit 1",
    )
    expect(event).toEqual({
      type: 'session.revoked',
      payload: { session: 'pat-1', user: 'pat', tenants: [], initiating_entity: 'admin' },
    })
  })

  test('changes nothing when its user cannot be signed out', async () => {
    await openSession('pat-2')
    await served.sql.query('alter table outbox_arrival add constraint full_disk check (false) not valid')
    expect((await put('the third password')).status).toBe(500)
    await served.sql.query('alter table outbox_arrival drop constraint full_disk')
    expect(await sessions()).toEqual([{ uid: 'pat-2' }])
    expect((await put('the second password')).status).toBe(200)
    expect(await sessions()).toEqual([{ uid: 'pat-2' }])
  })
})

describe('/v1/events', () => {
  const read = async (query: string, token = admin) => (await send('GET', `/v1/events${query}`, undefined, token)).body
  const gate = (organization: string, key: string) =>
    served.store.write(
      organization,
      [{ kind: 'entitlement', key, entitlement: { value: { enabled: true }, enforcement: 'Claims' } }],
      { context: CONTEXT },
    )

  test('tells of changed entitlements in the order of their commits, to each only what is theirs', async () => {
    const { next } = await read('')
    await gate('acme', 'feature.a')
    await gate('beta', 'feature.b')
    const all = await read(`?after=${next}`)
    expect(all.items).toEqual([
      {
        id: expect.any(String),
        type: 'entitlement.updated',
        organization: 'acme',
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        data: { organization: 'acme', keys: ['feature.a'], version: 1 },
      },
      expect.objectContaining({ organization: 'beta' }),
    ])
    const bound = await served.manager({ client: 'acme-reader', organization: 'acme', scopes: ['events:read'] })
    const own = await read(`?after=${next}`, bound)
    expect(own.items.map((event: { organization: string }) => event.organization)).toEqual(['acme'])
    expect(own.next).toBe(all.next)
    expect((await read(`?after=${all.next}`)).items).toEqual([])
  })

  test('tells nothing of a write that failed, and of an equal one that the version is another', async () => {
    const { next: first } = await read('?after=0')
    await gate('acme', 'feature.a')
    const { items, next } = await read(`?after=${first}`)
    expect(items).toMatchObject([{ type: 'entitlement.updated', data: { keys: ['feature.a'], version: 2 } }])
    await expect(
      served.store.write(
        'acme',
        [{ kind: 'entitlement', key: 'feature.z', entitlement: { value: { enabled: true }, enforcement: 'Claims' } }],
        {
          context: CONTEXT,
          preconditions: [{ tuple: { object: 'x:1', relation: 'r', subject: 'user:a' }, exists: true }],
        },
      ),
    ).rejects.toMatchObject({ code: 'precondition_failed' })
    expect((await read(`?after=${next}`)).items).toEqual([])
  })

  test('waits for the next event', async () => {
    const { next } = await read('?after=0')
    const waiting = read(`?after=${next}&wait=10`)
    await gate('acme', 'feature.later')
    expect((await waiting).items).toHaveLength(1)
    const started = performance.now()
    expect((await read(`?after=${Number(next) + 1}&wait=1`)).items).toEqual([])
    expect(performance.now() - started).toBeGreaterThan(900)
  })

  test('leads a reader back that is ahead, as of a database that was restored', async () => {
    const { next } = await read('?after=0')
    expect(await read(`?after=${Number(next) + 20}&wait=20`)).toEqual({ items: [], next })
  })

  test('loses none when a transaction that began first commits last', async () => {
    const { next } = await read('?after=0')
    const event = (n: number) => ({ type: 'session.revoked', organization: null, data: { n } }) as const
    const held = Promise.withResolvers<void>()
    const appended = Promise.withResolvers<void>()
    const slow = served.sql.transaction(async (sql) => {
      await appendEvents(sql, [event(1)])
      appended.resolve()
      await held.promise
    })
    await appended.promise
    const fast = Promise.all(
      Array.from({ length: 5 }, (_, i) => served.sql.transaction((sql) => appendEvents(sql, [event(i + 2)]))),
    )
    await fast
    const numbersOf = (page: { items: readonly { data: { n: number } }[] }) => page.items.map(({ data }) => data.n)
    const before = await read(`?after=${next}`)
    expect(numbersOf(before).toSorted()).toEqual([2, 3, 4, 5, 6])
    held.resolve()
    await slow
    // It has the number of its commit, so a reader cannot have stepped over it.
    expect(numbersOf(await read(`?after=${before.next}`))).toEqual([1])
  })

  test.each(['?after=x', '?after=-1', '?wait=21', '?wait=x', '?unknown=1'])('refuses %s', async (query) => {
    expect((await send('GET', `/v1/events${query}`)).status).toBe(400)
  })
})

test('clients may register a key instead of a secret, and only a public one', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const keyed = (jwk: object) => ({
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [jwk] },
  })
  const made = await send('PUT', '/v1/clients/keyed', keyed(await exportJWK(publicKey)))
  expect([made.status, made.body.client_secret]).toEqual([201, undefined])
  expect((await send('PUT', '/v1/clients/keyed', keyed(await exportJWK(privateKey)))).status).toBe(400)
  expect((await send('PUT', '/v1/clients/keyed', { ...keyed({}), jwks: undefined })).status).toBe(400)
})
