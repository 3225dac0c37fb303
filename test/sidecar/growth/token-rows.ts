/** Growth of what verifies tokens and proofs that a stranger made, until the signature turns out to be wrong. */
import { createProofVerifier, readProof } from '../../../pdp/shared/token/dpop.ts'
import { localKeys, NO_KEYS } from '../../../pdp/shared/token/keys.ts'
import { takeLogoutToken } from '../../../pdp/shared/token/logout-token.ts'
import { createNonces } from '../../../pdp/shared/token/nonces.ts'
import { createIntrospect } from '../../../pdp/shared/token/opaque-tokens.ts'
import { processReplayMemory } from '../../../pdp/shared/token/replay.ts'
import { createTokenVerifier, type TrustedIssuer } from '../../../pdp/shared/token/verify.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { createIssuer, rsaKeys } from '../../support/peers/issuer.ts'
import { run } from '../support/enforcing.ts'
import { filled } from './inputs.ts'

const TOKEN_MOST = 16_384
const PROOF_MOST = 8_192
const NOW = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => NOW
const AUDIENCE = 'https://app.test'
const URL_OF_REQUEST = 'https://app.test/invoices/1'

const issuer = await createIssuer({ issuer: 'https://as.test', audience: AUDIENCE, clock })
const keys = localKeys(() => issuer.jwks.keys, clock)
const rsa: TrustedIssuer = { issuer: issuer.issuer, keys, algorithms: ['RS256'] }
const signed = createTokenVerifier({ issuers: [rsa], audience: AUDIENCE, clock })
/** The issuer knows no token. */
const introspect = createIntrospect({
  issuer: 'https://other.test',
  endpoint: 'https://other.test/introspect',
  clientId: 'c',
  clientSecret: () => 's',
  clock,
  fetch: async () => Response.json({ active: false }),
})
const external = { audience: AUDIENCE, subject_prefix: '~o:', organizations: ['acme'] }
const opaque = createTokenVerifier({
  issuers: [{ issuer: 'https://other.test', keys: NO_KEYS, algorithms: [], external, introspect }],
  audience: AUDIENCE,
  clock,
})
const key = rsaKeys().publicKey.export({ format: 'jwk' })
const proofs = createProofVerifier({
  clock,
  replay: processReplayMemory({ clock, entriesMax: 100 }),
  nonces: createNonces({ secret: Buffer.alloc(32, 'n'), clock }),
})

type Words = { readonly [name: string]: unknown }
const base64 = (value: Words): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const SIGNATURE = Buffer.alloc(256, 'x').toString('base64url')
const jws = (header: Words, payload: Words): string => `${base64(header)}.${base64(payload)}.${SIGNATURE}`
const rejected = (work: () => unknown): Promise<unknown> =>
  Promise.resolve()
    .then(work)
    .catch((err: unknown) => err)

const SECONDS = NOW / 1_000
const HEADER = { alg: 'RS256', typ: 'at+jwt', kid: issuer.kid }
const PAYLOAD = {
  iss: issuer.issuer,
  aud: AUDIENCE,
  sub: 'alice',
  client_id: 'c',
  iat: SECONDS,
  exp: SECONDS + 300,
  jti: 'j',
}
/** Header and payload whose text has about `size` characters, where a stranger may choose a long one. */
const LONG: { readonly [name: string]: (size: number) => readonly [Words, Words] } = {
  'a claim': (size) => [HEADER, { ...PAYLOAD, x: filled(size, 'a') }],
  'many claims': (size) => [HEADER, { ...PAYLOAD, x: Array.from({ length: size / 5 }, () => 'a') }],
  audiences: (size) => [HEADER, { ...PAYLOAD, aud: Array.from({ length: size / 5 }, () => 'a') }],
  'an issuer of slashes': (size) => [HEADER, { ...PAYLOAD, iss: filled(size, '/', { before: issuer.issuer }) }],
  'a kid': (size) => [{ ...HEADER, kid: filled(size, 'a') }, PAYLOAD],
  'a type': (size) => [{ ...HEADER, typ: filled(size, 'a/') }, PAYLOAD],
}
const ofToken = (name: string, make: (size: number) => string, verifier = signed): Growth => ({
  name: `a token with ${name} that nobody signed`,
  runs: [
    'pdp/shared/token/verify.ts:createTokenVerifier',
    'pdp/shared/token/signature.ts:findSigner',
    'pdp/shared/token/algorithms.ts:isAlgorithm',
    'pdp/shared/token/issuer-claims.ts:requireAccessToken',
    'pdp/shared/token/remote-keys.ts:describeSlash',
    'pdp/shared/token/opaque-tokens.ts:createIntrospect',
  ],
  most: TOKEN_MOST,
  at(size) {
    const token = make((size * 3) / 4 - 500)
    return () => rejected(() => verifier.verify(token))
  },
})

const PROOF_HEADER = { alg: 'RS256', typ: 'dpop+jwt', jwk: key }
const PROOF_PAYLOAD = { jti: 'j', htm: 'GET', htu: URL_OF_REQUEST, iat: SECONDS, ath: 'a' }
const LONG_PROOFS: { readonly [name: string]: (size: number) => readonly [Words, Words] } = {
  'an address': (size) => [PROOF_HEADER, { ...PROOF_PAYLOAD, htu: filled(size, '%41/', { before: AUDIENCE }) }],
  'an address of dots': (size) => [PROOF_HEADER, { ...PROOF_PAYLOAD, htu: filled(size, '/..', { before: AUDIENCE }) }],
  'a nonce': (size) => [PROOF_HEADER, { ...PROOF_PAYLOAD, nonce: filled(size, 'a.') }],
  'an id': (size) => [PROOF_HEADER, { ...PROOF_PAYLOAD, jti: filled(size, 'a') }],
  'a modulus': (size) => [{ ...PROOF_HEADER, jwk: { ...key, n: filled(size, 'A') } }, PROOF_PAYLOAD],
  'members of its key': (size) => [
    { ...PROOF_HEADER, jwk: { ...key, key_ops: Array.from({ length: size / 5 }, () => 'a') } },
    PROOF_PAYLOAD,
  ],
}

export const TOKEN_ROWS: readonly Growth[] = [
  ...Object.entries(LONG).map(([name, make]) => ofToken(name, (size) => jws(...make(size)))),
  ofToken('no parts', (size) => filled(size, 'a'), opaque),
  ...Object.entries(LONG).map(([name, make]) => ({
    name: `a token with ${name} that nobody signed, on a public route that passes an identity`,
    runs: ['sidecar/enforce/enforce.ts:enforce'],
    most: TOKEN_MOST,
    at(size: number) {
      const authorization = `Bearer ${jws(...make((size * 3) / 4 - 500))}`
      const routes = 'GET /feed: {public: with_identity}'
      return () => run({ routes, line: 'GET /feed', authorization, tokens: signed })
    },
  })),
  ...Object.entries(LONG_PROOFS).map(([name, make]) => ({
    name: `a proof with ${name}`,
    runs: [
      'pdp/shared/token/dpop.ts:createProofVerifier',
      'pdp/shared/token/nonces.ts:createNonces',
      'pdp/shared/token/algorithms.ts:jwkSuits',
      'pdp/shared/token/algorithms.ts:modulusBits',
      'pdp/shared/token/algorithms.ts:verifySignature',
      'pdp/shared/token/keys.ts:publicMembers',
      'pdp/shared/token/keys.ts:isForVerifying',
      'pdp/shared/token/keys.ts:importPublic',
    ],
    most: PROOF_MOST,
    at: (size: number) => {
      const request = { proofs: [jws(...make((size * 3) / 4 - 1_000))], method: 'GET', url: URL_OF_REQUEST }
      return () => rejected(() => proofs(request, { digest: 'a', jkt: readProof(request.proofs).thumbprint }))
    },
  })),
  {
    name: 'a logout token that nobody signed',
    runs: ['pdp/shared/token/logout-token.ts:takeLogoutToken'],
    most: PROOF_MOST,
    at(size) {
      const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
      const payload = { ...PAYLOAD, events, sub: filled((size * 3) / 4 - 700, 'a') }
      const token = jws({ ...HEADER, typ: 'logout+jwt' }, payload)
      const memory = { has: async () => false, keep: async () => undefined }
      return () =>
        rejected(() => takeLogoutToken(token, { ...rsa, clientId: AUDIENCE }, { memory, clock }, async () => undefined))
    },
  },
]
