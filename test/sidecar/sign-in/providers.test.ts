/** What providers do that is not as the sidecar would have it: each is understood, or refused with a reason in the log. */
import { exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ProviderEntry } from '../../../sidecar/route-file/sign-in.ts'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { createProvider } from '../../../sidecar/sign-in/provider.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Behaviour, type ScriptedIssuer, startIssuer } from './scripted-issuer.ts'
import { callbackOf, expectRefused, MINUTE, movableWorlds, notify, signedIn, statusOf } from './steps.ts'
import type { World } from './world.ts'

const worlds = movableWorlds()
afterAll(worlds.close)

const reasons = ({ log }: World): string => JSON.stringify(log)

describe('a way back, when the provider', () => {
  let world: World
  beforeAll(async () => {
    world = await worlds.open({ providers: 2 })
  })
  afterEach(() => {
    world.issuers[0].behave.tokenStatus = null
    world.issuers[0].behave.idClaims = {}
  })

  test.each<[string, Partial<Behaviour>, number, string]>([
    [
      'refuses our secret',
      { tokenStatus: 401, tokenError: { error: 'invalid_client', error_description: 'AADSTS7000215:\r\nexpired.' } },
      400,
      'invalid_client: AADSTS7000215: expired.',
    ],
    ['is away behind a proxy', { tokenStatus: 502, tokenError: '<h1>Bad Gateway</h1>' }, 503, '/token answered 502'],
    [
      'has an error of its own',
      { tokenStatus: 500, tokenError: { error: 'server_error' } },
      503,
      '/token answered 500',
    ],
    [
      'answers without end',
      { tokenStatus: 200, tokenError: `{"a":"${'x'.repeat(2 * 1024 * 1024)}"}` },
      503,
      '/token answered with more than 1 MiB',
    ],
    ['sends on to another address', { tokenStatus: 302, tokenError: '' }, 400, '/token answered 302'],
    ['has another client in mind', { idClaims: { aud: 'other' } }, 400, 'unexpected JWT \\"aud\\" (audience)'],
    ['forgets the nonce', { idClaims: { nonce: undefined } }, 400, 'JWT \\"nonce\\" (nonce) claim missing'],
  ])('%s ends on a page, and the log has what it said', async (_, behave, status, said) => {
    const browser = world.browser()
    const callback = await callbackOf(world, browser)
    Object.assign(world.issuers[0].behave, behave)
    expectRefused(await browser.visit(callback), status)
    expect(reasons(world)).toContain(said)
  })
})

test.each<[string, object, string]>([
  [
    'of another issuer',
    { issuer: 'https://login.evil.test/{tenantid}/v2.0' },
    'it names https://login.evil.test/{tenantid}/v2.0',
  ],
  ['without an authorization endpoint', { authorization_endpoint: undefined }, 'authorization_endpoint'],
])('metadata %s sends nobody anywhere, and the log says why', async (_, metadata, said) => {
  const own = await worlds.open()
  Object.assign(own.issuers[0].behave.metadata, metadata)
  expect((await own.browser().visit('/docs/1')).status).toBe(503)
  expect(reasons(own)).toContain(said)
})

describe('a session without the provider’s session in its ID token', () => {
  test('ends with a logout token for its subject that names a session, and no other subject’s does', async () => {
    const own = await worlds.open()
    const [issuer] = own.issuers
    issuer.behave.idClaims = { sid: undefined }
    const browser = await signedIn(own)
    await notify(own, await issuer.signLogout({ sid: 's9', sub: 'bob' }))
    expect(await statusOf(browser)).toBe(200)
    expect((await notify(own, await issuer.signLogout({ sid: 's9', sub: 'alice' }))).status).toBe(200)
    expect(await statusOf(browser)).toBe(401)
  })

  test('leaves those alone that name another session', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    await notify(own, await own.issuers[0].signLogout({ sid: 's9', sub: 'alice' }))
    expect(await statusOf(browser)).toBe(200)
  })
})

test('an issuer that is asked about its tokens signs people out by a logout token, as others do', async () => {
  const own = await worlds.open({
    // As the PDP reads tokens of this issuer.
    script: (asked) => {
      const answer = tuples(['alice viewer doc:1'])(asked)
      if (answer !== null && typeof answer === 'object' && answer.subject) answer.subject.id = '~idp:alice'
      return answer
    },
    issuer: (url) =>
      `, external: {subject_prefix: "idp:", organizations: [acme]}, introspection: {endpoint: "${url}/introspect", client_id: web, client_secret_file: /secret}`,
  })
  const browser = await signedIn(own)
  expect((await notify(own, await own.issuers[0].signLogout({ sid: 's1' }, { kid: 'other' }))).status).toBe(400)
  expect(await statusOf(browser)).toBe(200)
  expect((await notify(own, await own.issuers[0].signLogout({ sid: 's1' }))).status).toBe(200)
  expect(await statusOf(browser)).toBe(401)
})

test.each<[string, (own: World) => Promise<Partial<Behaviour>>, string]>([
  [
    'of another issuer',
    async ({ issuers: [, other] }) => ({ accessToken: (await other?.tokens.token({ sub: 'alice' })) ?? '' }),
    'the access token is of another issuer',
  ],
  ['of another person', async () => ({ accessClaims: { sub: 'mallory' } }), 'name different people'],
  ['that is bound to a key', async () => ({ accessClaims: { cnf: { jkt: 'a'.repeat(43) } } }), 'bound to a key'],
])('a renewal that brings an access token %s renews nothing, and the log says so', async (_, behave, said) => {
  const own = await worlds.open({ providers: 2 })
  const browser = own.browser()
  await browser.visit(await callbackOf(own, browser))
  Object.assign(own.issuers[0].behave, await behave(own))
  worlds.clock.aheadMs += 4.5 * MINUTE
  // The token that is there is still good.
  expect(await statusOf(browser)).toBe(200)
  expect(reasons(own)).toContain(said)
  worlds.clock.aheadMs += MINUTE
  expect(await statusOf(browser)).not.toBe(200)
})

describe('the secret of the client', () => {
  let issuer: ScriptedIssuer
  beforeAll(async () => {
    issuer = await startIssuer({ audience: 'https://app.test' })
  })
  afterAll(() => issuer.close())

  test.each([
    ['by HTTP Basic, where the metadata says nothing', undefined, null],
    ['by HTTP Basic, where both are taken', ['client_secret_post', 'client_secret_basic'], null],
    ['in the form, where nothing else is taken', ['client_secret_post', 'private_key_jwt'], 's3cret'],
  ])('is sent %s', async (_, methods, inForm) => {
    issuer.behave.metadata = { token_endpoint_auth_methods_supported: methods }
    const entry: ProviderEntry = {
      ...{ issuer: issuer.url, clientId: 'web', clientSecretFile: 'web.secret', clientKeyFile: null },
      ...{ name: '', label: 'L', scope: 'openid', parameters: {} },
    }
    const provider = createProvider(entry, {
      fetch: createKeyFetch({}),
      resource: null,
      readSecret: () => 's3cret',
      clock: Date.now,
    })
    await expect(provider.refresh('unknown')).rejects.toMatchObject({ code: 'invalid_grant' })
    expect(issuer.grants.at(-1)?.get('client_secret')).toBe(inForm)
  })

  const byKey = (readSecret: () => string) => {
    const entry: ProviderEntry = {
      ...{ issuer: issuer.url, clientId: 'web', clientSecretFile: null, clientKeyFile: 'web.jwk' },
      ...{ name: '', label: 'L', scope: 'openid', parameters: {} },
    }
    return createProvider(entry, { fetch: createKeyFetch({}), resource: null, readSecret, clock: Date.now }).refresh(
      'unknown',
    )
  }

  test.each(['RS256', 'PS256', 'ES256', 'Ed25519'])('is replaced by a signature of its key with %s', async (alg) => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    const jwk = JSON.stringify({ ...(await exportJWK(privateKey)), alg, kid: 'k1' })
    await expect(byKey(() => jwk)).rejects.toMatchObject({ code: 'invalid_grant' })
    const form = issuer.grants.at(-1)
    expect(form?.get('client_assertion_type')).toBe('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    const { payload, protectedHeader } = await jwtVerify(form?.get('client_assertion') ?? '', publicKey)
    expect(payload).toMatchObject({ iss: 'web', sub: 'web', aud: issuer.url })
    expect(protectedHeader).toMatchObject({ alg, kid: 'k1' })
    expect(form?.get('client_secret')).toBeNull()
  })

  test.each([
    ['is no JSON', 'secret-{'],
    ['is a list', '[]'],
    ['has no kid', '{"kty":"RSA","alg":"RS256"}'],
    ['has no algorithm', '{"kty":"RSA","kid":"a"}'],
    ['is symmetric', '{"kty":"oct","k":"c2VjcmV0","kid":"a","alg":"HS256"}'],
    [
      'is public',
      '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a","alg":"EdDSA"}',
    ],
    ['is broken', '{"kty":"EC","crv":"P-256","x":"a","y":"a","d":"a","kid":"a","alg":"ES256"}'],
  ])('cannot be replaced by a key that %s, which no message shows', async (_, text) => {
    const count = issuer.grants.length
    await expect(byKey(() => text)).rejects.toThrow('web.jwk must hold a private JWK with alg and kid')
    expect(issuer.grants.length).toBe(count)
  })
})
