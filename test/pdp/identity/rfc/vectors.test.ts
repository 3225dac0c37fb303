/** What the RFCs print, put through our own code: thumbprints, proofs, signatures, claims, challenges, addresses. */
import { createHash, createPublicKey } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { resourceMetadataUrl } from '../../../../pdp/identity/oauth/paths.ts'
import { isAlgorithm, verifySignature } from '../../../../pdp/shared/token/algorithms.ts'
import { challenge } from '../../../../pdp/shared/token/challenge.ts'
import { createProofVerifier } from '../../../../pdp/shared/token/dpop.ts'
import { parseJws } from '../../../../pdp/shared/token/jws.ts'
import { localKeys, publicMembers } from '../../../../pdp/shared/token/keys.ts'
import { processReplayMemory } from '../../../../pdp/shared/token/replay.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { createIssuer } from '../../../support/peers/issuer.ts'
import { createFlow } from '../flow.ts'
import { decode, openWorld, type World } from '../harness.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')
/** As the proof verifier computes it. */
const thumbprint = (jwk: object): string => sha256(JSON.stringify(publicMembers({ ...jwk })))

const RFC9449_KEY = {
  kty: 'EC',
  x: 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs',
  y: '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA',
  crv: 'P-256',
}
const RFC9449_HEAD =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19'
const TOKEN_REQUEST_PROOF = `${RFC9449_HEAD}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg`
const RESOURCE_PROOF = `${RFC9449_HEAD}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA`
const RFC7638_KEY = {
  kty: 'RSA',
  n: '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw',
  e: 'AQAB',
  alg: 'RS256',
  kid: '2011-04-29',
}
const RFC8037_KEY = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }

describe('thumbprints', () => {
  test.each([
    ['RFC 7638 section 3.1', RFC7638_KEY, 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'],
    ['RFC 8037 appendix A.3', RFC8037_KEY, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'],
    ['RFC 9449 section 6.1', RFC9449_KEY, '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'],
  ])('of %s', async (_, jwk, printed) => {
    expect(thumbprint(jwk)).toBe(printed)
    expect(await calculateJwkThumbprint(jwk)).toBe(printed) // what names our signing keys
  })
})

describe('the proofs of RFC 9449', () => {
  const jkt = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
  const digest = 'fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo'
  const at = (seconds: number) => {
    const clock = () => seconds * 1_000
    return createProofVerifier({ clock, replay: processReplayMemory({ clock, entriesMax: 10 }) })
  }
  const resource = { method: 'GET', url: 'https://resource.example.org/protectedresource' }

  test('section 7.1: is good for its token, once', async () => {
    expect(sha256('Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU')).toBe(digest)
    const verifyProof = at(1_562_262_618)
    await verifyProof({ ...resource, proofs: [RESOURCE_PROOF] }, { digest, jkt })
    const again = verifyProof({ ...resource, proofs: [RESOURCE_PROOF] }, { digest, jkt })
    await expect(again).rejects.toMatchObject({ code: 'proof_replayed' })
  })

  test.each([
    ['a minute later', 1_562_262_618 + 60, {}, 'proof_invalid'],
    ['by another method', 1_562_262_618, { method: 'POST' }, 'proof_invalid'],
    ['elsewhere', 1_562_262_618, { url: 'https://server.example.com/token' }, 'proof_invalid'],
    ['with a signature that is cut', 1_562_262_618, { proofs: [RESOURCE_PROOF.slice(0, -2)] }, 'proof_invalid'],
  ])('section 7.1: is refused %s', async (_, seconds, change, code) => {
    const request = { ...resource, proofs: [RESOURCE_PROOF], ...change }
    await expect(at(seconds)(request, { digest, jkt })).rejects.toMatchObject({ code })
  })

  test('section 5: is signed by its key, and is no proof for a resource, since it has no ath', async () => {
    const jws = parseJws(TOKEN_REQUEST_PROOF, 8_192)
    expect(jws?.payload).toMatchObject({ jti: '-BwC3ESc6acc2lTc', htm: 'POST', iat: 1_562_262_616 })
    const key = createPublicKey({ key: RFC9449_KEY, format: 'jwk' })
    expect(await verifySignature('ES256', key, jws?.signed ?? expect.fail())).toBe(true)
    const request = { proofs: [TOKEN_REQUEST_PROOF], method: 'POST', url: 'https://server.example.com/token' }
    await expect(at(1_562_262_616)(request, { digest, jkt })).rejects.toMatchObject({ code: 'proof_invalid' })
  })
})

describe('signatures', () => {
  const claims = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
  const cases = [
    [
      'RFC 7515 A.2',
      'RS256',
      {
        kty: 'RSA',
        n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
        e: 'AQAB',
      },
      `eyJhbGciOiJSUzI1NiJ9.${claims}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`,
    ],
    [
      'RFC 7515 A.3',
      'ES256',
      {
        kty: 'EC',
        crv: 'P-256',
        x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
        y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      },
      `eyJhbGciOiJFUzI1NiJ9.${claims}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
    ],
    [
      'RFC 8037 A.4',
      'EdDSA',
      RFC8037_KEY,
      'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg',
    ],
  ] as const

  test.each(cases)('of %s verifies as %s, and not with a bit changed', async (_, algorithm, jwk, jws) => {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const input = Buffer.from(jws.slice(0, jws.lastIndexOf('.')))
    const signature = Buffer.from(jws.slice(jws.lastIndexOf('.') + 1), 'base64url')
    expect(await verifySignature(algorithm, key, { input, signature })).toBe(true)
    for (const part of [input, signature]) {
      part.writeUInt8(part.readUInt8(7) ^ 1, 7)
      expect(await verifySignature(algorithm, key, { input, signature })).toBe(false)
      part.writeUInt8(part.readUInt8(7) ^ 1, 7)
    }
  })

  test.each([
    ['A.1, HS256', `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${claims}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`],
    ['A.5, unsecured', `eyJhbGciOiJub25lIn0.${claims}.`],
  ])('of RFC 7515 %s is of no algorithm that we know', (_, jws) => {
    expect(isAlgorithm(decode(jws).header.alg)).toBe(false)
  })
})

describe('the access token of RFC 9068 section 2.2', () => {
  const claims = {
    iss: 'https://authorization-server.example.com/',
    sub: '5ba552d67',
    aud: 'https://rs.example.com/',
    exp: 1_639_528_912,
    iat: 1_618_354_090,
    jti: 'dbe39bf3a3ba4238a513f51d6e1691c4',
    client_id: 's6BhdRkqt3',
    scope: 'openid profile reademail',
  }
  async function verify(change: { claims?: object; header?: object; audience?: string } = {}) {
    const clock = () => 1_618_354_090_000
    const issuer = await createIssuer({ issuer: claims.iss, audience: claims.aud, clock, kid: 'RjEwOwOA' })
    const token = await issuer.token(
      { org: undefined, ...claims, ...change.claims },
      { typ: 'at+JWT', ...change.header },
    )
    const verifier = createTokenVerifier({
      issuers: [{ issuer: claims.iss, keys: localKeys(() => issuer.jwks.keys, clock), algorithms: ['RS256'] }],
      audience: change.audience ?? claims.aud,
      clock,
    })
    return verifier.verify(token)
  }

  test('is good as it is printed, type included', async () => {
    expect(await verify()).toMatchObject({ subject: '5ba552d67', clientId: 's6BhdRkqt3', jti: claims.jti })
  })

  test.each([
    ['another type', { header: { typ: 'JWT' } }],
    ['another issuer', { claims: { iss: 'https://authorization-server.example.com' } }],
    ['another resource', { audience: 'https://rs.example.com' }],
    ['no client_id', { claims: { client_id: undefined } }],
  ])('is refused with %s', async (_, change) => {
    await expect(verify(change)).rejects.toMatchObject({ code: 'token_invalid' })
  })
})

describe('at the running service', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world.close())

  test('RFC 7636 appendix B: the code for its challenge is redeemed with its verifier', async () => {
    const flow = createFlow(world)
    const printed = { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' }
    const code = async () => (await flow.authorize(printed)).searchParams.get('code') ?? ''
    const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
    expect((await flow.redeem(await code(), { code_verifier: verifier })).status).toBe(200)
    expect((await flow.redeem(await code(), { code_verifier: `${verifier.slice(0, -1)}j` })).body.error).toBe(
      'invalid_grant',
    )
  })

  test('OpenID Connect Core A.3: at_hash is made as it was there', async () => {
    const half = (token: string) => createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url')
    expect(half('jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y')).toBe('77QmUPtjPfzWtF2AnpK9RQ')
    const flow = createFlow(world)
    const { body } = await flow.redeem(await flow.newCode())
    expect(decode(String(body.id_token)).payload.at_hash).toBe(half(String(body.access_token)))
  })
})

describe('what we write as the RFCs do', () => {
  test('RFC 9470 section 3: the challenges', () => {
    const described = {
      error: 'insufficient_user_authentication',
      error_description: 'A different authentication level is required',
    } as const
    expect(challenge('Bearer', { ...described, acr_values: 'myACR' })).toBe(
      'Bearer error="insufficient_user_authentication", error_description="A different authentication level is required", acr_values="myACR"',
    )
    const recent = {
      error: 'insufficient_user_authentication',
      error_description: 'More recent authentication is required',
    } as const
    expect(challenge('Bearer', { ...recent, max_age: 5 })).toBe(
      'Bearer error="insufficient_user_authentication", error_description="More recent authentication is required", max_age="5"',
    )
  })

  test('RFC 9728 section 3.1: the address of the metadata', () => {
    expect(resourceMetadataUrl('https://resource.example.com')).toBe(
      'https://resource.example.com/.well-known/oauth-protected-resource',
    )
    expect(resourceMetadataUrl('https://resource.example.com/resource1')).toBe(
      'https://resource.example.com/.well-known/oauth-protected-resource/resource1',
    )
  })
})
