import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { appendJournal } from '../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../pdp/engine/store/postgres/outbox.ts'
import { createIdentity } from '../../../pdp/identity/identity.ts'
import { createStatementSigner, loadSigningKeys } from '../../../pdp/identity/issuer/keys/signing-keys.ts'
import { SERVICE_SCOPES } from '../../../pdp/identity/oauth/scopes.ts'
import { hashGeneratedSecret } from '../../../pdp/identity/people/passwords/password-hash.ts'
import { masterKeysOf } from '../../../pdp/shared/base/encryption.ts'
import { clientToken } from '../../support/sign-in.ts'
import {
  CONTEXT,
  DECOY_HASH,
  decode,
  logInto,
  MASTER_KEY,
  openWorld,
  postToken,
  SECRET,
  type World,
} from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ embedEntitlements: 'off' })
})
afterAll(() => world.close())

const again = (masterKey = MASTER_KEY) => {
  const { issuer, sql, store, directory } = world
  const log = logInto([])
  return createIdentity({
    issuer,
    sql,
    store,
    directory,
    pdp: createPdp({ store }),
    appendJournal,
    appendEvents,
    fetch: globalThis.fetch,
    masterKeys: masterKeysOf(masterKey),
    decoyHash: DECOY_HASH,
    clock: Date.now,
    log,
  })
}

describe('signing keys', () => {
  test('are the same for every process on the same database', async () => {
    const others = await Promise.all([again(), again()])
    for (const other of others) expect(other.publicKeys()).toEqual(world.identity.publicKeys())
    await Promise.all(others.map((other) => other.close()))
  })

  test('sign the statements of the issuer', async () => {
    const statement = await world.identity.signStatement({ iss: world.issuer, member: ['x'] })
    const keys = createLocalJWKSet({ keys: [...world.identity.publicKeys()] })
    const { payload, protectedHeader } = await jwtVerify(statement, keys, { issuer: world.issuer, typ: 'JWT' })
    expect([payload, protectedHeader.alg]).toEqual([{ iss: world.issuer, member: ['x'] }, 'RS256'])
    const [head = '', , signature = ''] = statement.split('.')
    const forged = [head, Buffer.from('{"iss":"x"}').toString('base64url'), signature].join('.')
    await expect(jwtVerify(forged, keys)).rejects.toThrow(/signature verification failed/)
  })

  test('sign the same statement once, until another key is active', async () => {
    const keys = await loadSigningKeys({ sql: world.sql, masterKeys: masterKeysOf(MASTER_KEY) })
    let current = keys
    const sign = createStatementSigner(() => current)
    const first = await sign({ iss: 'a' })
    current = { ...keys }
    expect(await sign({ iss: 'a' })).toBe(first)
    expect(await sign({ iss: 'b' })).not.toBe(first)
    const [before, next] = keys.privateJwks
    if (before === undefined || next?.kid === undefined) throw new Error('there is no next key')
    current = { ...keys, privateJwks: [next, before], activeKid: next.kid }
    expect(decodeProtectedHeader(await sign({ iss: 'a' })).kid).toBe(next.kid)
  })

  test('do not open with another master key', async () => {
    await expect(again(Buffer.alloc(32, 8))).rejects.toThrow(/PORTCULLIS_MASTER_KEY is not the key/)
  })

  test('cannot be sealed with a short master key', async () => {
    await expect(again(Buffer.alloc(31))).rejects.toThrow(TypeError)
  })

  test('lie sealed in the database', async () => {
    const rows = await world.sql.query<{ text: string }>('select k::text as text from signing_key k')
    expect(rows).toHaveLength(2)
    for (const { text } of rows) expect(text).not.toMatch(/"(d|p|q|dp|dq|qi)"/)
  })

  test('are made once when several processes start first', async () => {
    const fresh = await openWorld()
    await fresh.sql.query('delete from signing_key')
    const { issuer, sql, store, directory } = fresh
    const parts = {
      appendJournal,
      appendEvents,
      fetch: globalThis.fetch,
      masterKeys: masterKeysOf(MASTER_KEY),
      decoyHash: DECOY_HASH,
      clock: Date.now,
    }
    const deps = { issuer, sql, store, directory, pdp: createPdp({ store }), ...parts }
    const started = await Promise.all(Array.from({ length: 4 }, () => createIdentity({ ...deps, log: logInto([]) })))
    expect(new Set(started.map((i) => JSON.stringify(i.publicKeys()))).size).toBe(1)
    expect(await fresh.sql.query('select 1 from signing_key')).toHaveLength(2)
    await Promise.all(started.map((i) => i.close()))
    await fresh.close()
  })
})

describe('client admin', () => {
  const admin = (clientSecret: string) =>
    clientToken({ issuer: world.issuer, clientId: 'admin', clientSecret, scope: SERVICE_SCOPES.join(' ') })

  test('is made at the first start with every service scope, bound to no organization', async () => {
    await world.identity.ensureAdmin('first-secret')
    const { payload } = decode((await admin('first-secret')).access_token)
    expect(payload.scope).toBe(SERVICE_SCOPES.join(' '))
    expect(payload).not.toHaveProperty('org')
  })

  test('is left alone when nothing changed, and takes a new secret', async () => {
    const before = await world.directory.client('admin')
    await world.identity.ensureAdmin('first-secret')
    expect(await world.directory.client('admin')).toEqual(before)
    await world.identity.ensureAdmin('second-secret')
    await expect(admin('first-secret')).rejects.toMatchObject({ status: 401 })
    await expect(admin('second-secret')).resolves.toBeTruthy()
  })

  test('is waited for by requests that come while it is made', async () => {
    const made = world.identity.ensureAdmin('third-secret')
    await expect(admin('third-secret')).resolves.toBeTruthy()
    await made
    await world.identity.ensureAdmin('second-secret')
  })

  test('stays deleted', async () => {
    await world.directory.deleteClient('admin', CONTEXT)
    await world.identity.ensureAdmin('second-secret')
    expect(await world.directory.client('admin')).toBeNull()
    expect(world.log.join('')).toContain('admin_client_absent')
  })
})

describe('a registration', () => {
  const validate = (metadata: object, secretHash: string | null = hashGeneratedSecret(SECRET)) =>
    world.identity.validateClient({ id: 'c', app: null, organization: null, metadata: { ...metadata }, secretHash })

  test.each([
    [{ grant_types: ['client_credentials'] }],
    [{ redirect_uris: ['https://app.example/cb'], scope: 'openid orders:read offline_access' }],
    [
      {
        redirect_uris: ['http://127.0.0.1/cb'],
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
  ])('such as %j is accepted', async (metadata) => {
    await expect(validate(metadata)).resolves.toBeUndefined()
  })

  test.each([
    [{}, 'redirect_uris'],
    [{ redirect_uris: ['not a uri'] }, 'redirect_uris'],
    [{ redirect_uris: ['https://app.example/#x'] }, 'redirect_uris'],
    [{ redirect_uris: ['javascript:alert(1)'], application_type: 'native' }, 'redirect_uris'],
    [{ redirect_uris: 'https://app.example/' }, 'redirect_uris'],
    [
      { grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_jwt' },
      'token_endpoint_auth_method',
    ],
    [{ grant_types: ['client_credentials'], token_endpoint_auth_method: 'magic' }, 'token_endpoint_auth_method'],
    [{ grant_types: ['client_credentials'], dpop_bound_access_tokens: 'yes' }, 'dpop_bound_access_tokens'],
  ])('such as %j is refused, naming %s', async (metadata, name) => {
    await expect(validate(metadata)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(name),
    })
  })

  test('of a confidential client needs a secret', async () => {
    await expect(validate({ grant_types: ['client_credentials'] }, null)).rejects.toMatchObject({
      code: 'request_invalid',
    })
  })
})

test('puts no entitlement into a token when the switch is off', async () => {
  const { body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
  const { payload } = decode(String(body.access_token))
  expect(payload).toMatchObject({ org: 'acme' })
  expect(payload).not.toHaveProperty('ent')
  expect(payload).not.toHaveProperty('ent_ver')
})

test('leaves entitlements out as a whole, and says so in the log, when they would make the token too large', async () => {
  const big = await openWorld()
  const value = { text: 'x'.repeat(6_000) }
  await big.store.write('acme', [{ kind: 'entitlement', key: 'big', entitlement: { value, enforcement: 'Claims' } }], {
    context: CONTEXT,
  })
  const { body } = await postToken(big, { grant_type: 'client_credentials' }, { id: 'robot' })
  const { payload } = decode(String(body.access_token))
  expect(payload).toMatchObject({ org: 'acme', roles: ['auditor'] })
  expect(payload).not.toHaveProperty('ent')
  expect(big.log.join('')).toContain('entitlements_left_out')
  await big.close()
})
