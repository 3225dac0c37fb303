/** Authenticating at a provider of others by our own key (private_key_jwt, RFC 7523). */
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CONTEXT, parseObject } from '../../harness.ts'
import { CLIENT, type Forged, forgeProvider } from './forged-provider.ts'
import { button, get, here, mine, other, person, post, provide, signedInAs, travel, useWorlds } from './world.ts'

useWorlds()
let forged: Forged
beforeAll(async () => {
  forged = await forgeProvider()
})
afterAll(() => forged.close())

async function publishedKeys(): Promise<JSONWebKeySet> {
  const { keys } = parseObject(await (await fetch(`${here.issuer}/oauth/jwks`)).text())
  return { keys: Array.isArray(keys) ? keys.map((key) => parseObject(JSON.stringify(key))) : [] } as JSONWebKeySet
}
const BY_KEY = { token_endpoint_auth_method: 'private_key_jwt', client_id: 'portal-by-key' } as const
const register = (jwks: JSONWebKeySet) =>
  other.putClient({
    id: 'portal-by-key',
    metadata: {
      ...{ redirect_uris: [`${here.issuer}/account/providers/other`], scope: 'openid email profile' },
      ...{ token_endpoint_auth_method: 'private_key_jwt', jwks: parseObject(JSON.stringify(jwks)) },
    },
  })

test('a real provider that knows our published keys lets people in, without any secret', async () => {
  await register(await publishedKeys())
  await here.identity.identityProviders.put(
    'other',
    { issuer: other.issuer, name: 'Other', creates_accounts: true, ...BY_KEY, secret: null },
    CONTEXT,
  )
  const them = await person(other)
  expect((await travel(them.email)).location).toBe(`${here.issuer}/account`)
  expect(await signedInAs()).toBe(them.email)
  const rows = await here.sql.query('select secret_sealed as sealed from identity_provider where provider_id = $1', [
    'other',
  ])
  expect(rows).toEqual([{ sealed: null }])
})

test('a provider that has another key for us lets nobody in', async () => {
  const keys = parseObject(await (await fetch(`${other.issuer}/oauth/jwks`)).text()).keys
  const [key] = Array.isArray(keys) ? keys : []
  const own = parseObject(JSON.stringify(key))
  await register({
    keys: [{ ...own, kid: 'of-somebody-else', n: `${String(own.n).slice(0, -4)}AAAA` }],
  } as JSONWebKeySet)
  await provide({ ...BY_KEY, creates_accounts: true })
  const them = await person(other)
  const back = await travel(them.email)
  expect([back.status, back.html]).toEqual([400, expect.stringContaining('was not right')])
  expect(await signedInAs()).toBeNull()
})

/** What the forged provider was sent for a code. */
async function redeemed() {
  const html = (await get('/account/sign-in')).html
  const sent = await post('/account/providers', button(html, 'forged'))
  const asked = new URL(sent.location).searchParams
  forged.claims = { nonce: asked.get('nonce') }
  await get(`/account/providers/forged?${new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })}`, mine)
  const request = forged.redeemed.at(-1)
  if (request === undefined) throw new Error('no code was redeemed')
  return request
}

test('each request has an assertion of its own, short-lived and for this issuer alone', async () => {
  await here.identity.identityProviders.put(
    'forged',
    {
      ...{ issuer: forged.issuer, client_id: CLIENT, name: 'Forged', secret: null },
      token_endpoint_auth_method: 'private_key_jwt',
    },
    CONTEXT,
  )
  const [first, second] = [await redeemed(), await redeemed()]
  const known = createLocalJWKSet(await publishedKeys())
  const ids = new Set<unknown>()
  for (const { authorization, form } of [first, second]) {
    expect([authorization, form.get('client_secret')]).toEqual([undefined, null])
    expect(form.get('client_assertion_type')).toBe('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    const { payload } = await jwtVerify(form.get('client_assertion') ?? '', known, { algorithms: ['RS256'] })
    const { iss, sub, aud, iat = 0, exp = 0, jti } = payload
    // Draft RFC 7523bis: the issuer as the only audience, so that no other server can use it.
    expect({ iss, sub, aud }).toEqual({ iss: CLIENT, sub: CLIENT, aud: forged.issuer })
    expect(exp - iat).toBeLessThanOrEqual(60)
    ids.add(jti)
  }
  expect([ids.size, ids.has(undefined)]).toEqual([2, false])
})

test('a stored secret is deleted when the key takes its place, and is needed again for a secret', async () => {
  const put = (more: object) =>
    here.identity.identityProviders.put(
      'switched',
      { issuer: 'https://login.example', client_id: 'c', name: 'Switched', secret: null, ...more },
      CONTEXT,
    )
  await put({ secret: 'a secret' })
  await put({ token_endpoint_auth_method: 'private_key_jwt' })
  await expect(put({})).rejects.toThrow('client_secret is needed')
})

test('our own issuer is no client id for it: a token of ours could pass as the assertion', async () => {
  const put = here.identity.identityProviders.put(
    'ours',
    {
      ...{ issuer: 'https://login.example/ours', client_id: here.issuer, name: 'Ours', secret: null },
      token_endpoint_auth_method: 'private_key_jwt',
    },
    CONTEXT,
  )
  await expect(put).rejects.toThrow('client_id is our own issuer')
})
