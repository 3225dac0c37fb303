/** The signed metadata of AuthZEN, as a stranger verifies it: with the keys that the issuer publishes. */
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { choosePorts } from './demo-stack.ts'
import { type OwnPdp, startOwnPdp } from './pdp-settings.ts'

let issuer: string
let pdp: OwnPdp
beforeAll(async () => {
  pdp = await startOwnPdp(await choosePorts({}))
  issuer = pdp.issuer
})
afterAll(() => pdp?.close())

const read = async (path: string) => JSON.parse(await (await fetch(new URL(path, issuer))).text())

test('verifies with a published key, says what the plain members say, and nothing else verifies', async () => {
  const { signed_metadata: signed, ...plain } = await read('/.well-known/authzen-configuration')
  const keys = createRemoteJWKSet(new URL((await read('/.well-known/openid-configuration')).jwks_uri))
  const { payload } = await jwtVerify(signed, keys, { issuer, algorithms: ['RS256'] })
  expect(payload).toEqual({ iss: issuer, ...plain })
  expect(plain.policy_decision_point).toBe(issuer)
  expect(decodeProtectedHeader(signed)).toEqual({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) })
  const [header, , signature] = signed.split('.')
  const changed = { ...payload, access_evaluation_endpoint: 'https://evil.example/access/v1/evaluation' }
  const forged = [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.')
  await expect(jwtVerify(forged, keys)).rejects.toThrow('signature verification failed')
})
