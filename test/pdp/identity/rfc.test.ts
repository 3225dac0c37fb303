import { createHash } from 'node:crypto'
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose'
import * as client from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deriveKey, open } from '../../../pdp/identity/sealing.ts'
import { createProofVerifier } from '../../../pdp/token/dpop.ts'
import { processReplayMemory } from '../../../pdp/token/replay.ts'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EXCHANGE } from './flows.ts'
import { decode, MASTER_KEY, openWorld, parseObject, postToken, SECRET, type World } from './harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

const sha256 = (text: string) => createHash('sha256').update(text).digest()
const RFC9449_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs',
  y: '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA',
}
const RFC9449_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU'
const RFC9449_PROOF =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA'

describe('printed vectors', () => {
  it('RFC 9449: thumbprint, ath and the proof of section 7.1', async () => {
    const jkt = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
    expect(await calculateJwkThumbprint(RFC9449_KEY)).toBe(jkt)
    const digest = sha256(RFC9449_TOKEN).toString('base64url')
    expect(digest).toBe('fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo')
    const clock = () => 1_562_262_618_000
    const verifyProof = createProofVerifier({ clock, replay: processReplayMemory({ clock, entriesMax: 10 }) })
    const request = { proofs: [RFC9449_PROOF], method: 'GET', url: 'https://resource.example.org/protectedresource' }
    await verifyProof(request, { digest, jkt })
    await expect(verifyProof(request, { digest, jkt })).rejects.toMatchObject({ code: 'proof_replayed' })
  })

  it('RFC 7636 appendix B: the challenge of its verifier', () => {
    expect(sha256('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk').toString('base64url')).toBe(
      'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    )
  })

  it('OpenID Connect Core A.3: at_hash of its access token', () => {
    const hash = sha256('jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y').subarray(0, 16)
    expect(hash.toString('base64url')).toBe('77QmUPtjPfzWtF2AnpK9RQ')
  })

  it('RFC 7515 A.3: the ES256 signature verifies', async () => {
    const key = await importJWK(
      {
        kty: 'EC',
        crv: 'P-256',
        x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
        y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      },
      'ES256',
    )
    const jws =
      'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q'
    const { payload } = await jwtVerify(jws, key, { currentDate: new Date(1_300_819_379_000) })
    expect(payload.iss).toBe('joe')
  })
})

const KINDS = {
  'access token': 'at+jwt',
  'ID token': 'JWT',
  'DPoP proof': 'dpop+jwt',
  'client assertion': 'client-authentication+jwt',
  'security event': 'secevent+jwt',
} as const
type Kind = keyof typeof KINDS

/** One body that would satisfy every validator, so that only the type tells the kinds apart. */
async function tokenOf(kind: Kind): Promise<string> {
  const now = Math.floor(Date.now() / 1_000)
  const { tokens } = await flows.code({ person: 'eve', organization: 'acme', scope: 'openid' })
  const { payload } = decode(tokens.access_token)
  const body: JWTPayload = { ...payload, jti: kind === 'access token' ? String(payload.jti) : crypto.randomUUID() }
  if (kind === 'access token') return tokens.access_token
  if (kind === 'ID token') return tokens.id_token ?? ''
  if (kind === 'security event') return signAsUs({ ...body, events: {} }, KINDS[kind])
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  return new SignJWT({ ...body, htm: 'POST', htu: `${world.issuer}/oauth/token`, iat: now })
    .setProtectedHeader({ alg: 'ES256', typ: KINDS[kind], jwk })
    .sign(privateKey)
}

async function signAsUs(payload: JWTPayload, typ: string): Promise<string> {
  const [row] = await world.sql.query<{ kid: string; private_jwk_sealed: string }>(
    "select * from signing_key where state = 'active'",
  )
  const kid = row?.kid ?? ''
  const jwk = parseObject(open(deriveKey(MASTER_KEY, 'signing-key'), kid, row?.private_jwk_sealed ?? ''))
  return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', typ, kid }).sign(await importJWK(jwk, 'RS256'))
}

describe('kinds of JWT are not taken for each other (RFC 8725 section 3.12)', () => {
  const accepts: Record<Kind, (token: string) => Promise<boolean>> = {
    'access token': async (token) => (await world.identity.introspect(token)).active,
    // Only a hint of ours; nothing else that we read is an ID token.
    'ID token': async (token) => {
      const url = `${world.issuer}/oauth/logout?${new URLSearchParams({ id_token_hint: token, client_id: 'flows' })}`
      return (await fetch(url)).status === 200
    },
    'DPoP proof': async (token) => {
      const form = { grant_type: 'client_credentials' }
      return (await postToken(world, form, { id: 'robot', headers: { dpop: token } })).status === 200
    },
    'client assertion': async (token) => {
      const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
      const form = { grant_type: 'client_credentials', client_assertion_type: type, client_assertion: token }
      return (await postToken(world, form)).status === 200
    },
    // We receive none: whoever presents one as a subject to exchange is refused.
    'security event': async (token) => {
      const form = { grant_type: EXCHANGE, subject_token: token, subject_token_type: ACCESS_TOKEN }
      return (
        token.length > 0 &&
        decode(token).header.typ !== 'at+jwt' &&
        (await postToken(world, form, { id: 'gateway' })).status === 200
      )
    },
  }
  const kinds = Object.keys(KINDS).filter((kind): kind is Kind => kind in KINDS)
  it.each(kinds.flatMap((validator) => kinds.map((kind) => ({ validator, kind }))))(
    'where a $validator is wanted, a $kind is taken only if it is one',
    async ({ validator, kind }) => {
      const isOwn = validator === kind && validator !== 'client assertion' && validator !== 'security event'
      expect(await accepts[validator](await tokenOf(kind))).toBe(isOwn)
    },
  )
})

describe('a token request with a stale proof', () => {
  it.each(['client_credentials', 'refresh_token', DEVICE_CODE, CIBA, EXCHANGE])(
    'is sent a nonce for grant %s, exactly one, that other clients may read',
    async (grant) => {
      const { privateKey, publicKey } = await generateKeyPair('ES256')
      const proof = await new SignJWT({
        htm: 'POST',
        htu: `${world.issuer}/oauth/token`,
        jti: crypto.randomUUID(),
        iat: 1,
      })
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: await exportJWK(publicKey) })
        .sign(privateKey)
      const form = {
        grant_type: grant,
        refresh_token: 'x',
        device_code: 'x',
        auth_req_id: 'x',
        subject_token: 'x',
        subject_token_type: ACCESS_TOKEN,
      }
      const id = grant === 'client_credentials' ? 'robot' : 'flows'
      const { status, headers, body } = await postToken(world, form, { id, headers: { dpop: proof } })
      expect([status, body.error]).toEqual([400, 'use_dpop_nonce'])
      expect(headers.get('dpop-nonce')).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]+$/)
    },
  )
})

describe('oauth4webapi', () => {
  it('accepts our metadata, our tokens and our introspection', async () => {
    const issuer = new URL(world.issuer)
    const insecure = { [client.allowInsecureRequests]: true } as const
    const server = await client.processDiscoveryResponse(issuer, await client.discoveryRequest(issuer, insecure))
    const resource = await client.processResourceDiscoveryResponse(
      issuer,
      await client.resourceDiscoveryRequest(issuer, insecure),
    )
    expect(resource.resource).toBe(world.issuer)
    const { tokens } = await flows.code({ person: 'eve', organization: 'acme' })
    const request = new Request(`${world.issuer}/oauth/userinfo`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    const claims = await client.validateJwtAccessToken(server, request, world.issuer, insecure)
    expect(claims.sub).toBe('eve')
    const own = { client_id: 'flows' }
    const answer = await client.introspectionRequest(
      server,
      own,
      client.ClientSecretBasic(SECRET),
      tokens.access_token,
      insecure,
    )
    expect(await client.processIntrospectionResponse(server, own, answer)).toMatchObject({ active: true, org: 'acme' })
    const info = await client.userInfoRequest(server, own, tokens.access_token, insecure)
    expect(await client.processUserInfoResponse(server, own, 'eve', info)).toMatchObject({ org_role: 'developer' })
  })
})
