/** Parses an authenticator's answers (WebAuthn level 3), and has @simplewebauthn/server verify them. */
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'

/** COSE numbers of Ed25519, ECDSA with P-256 and SHA-256, and RSA with PKCS #1 v1.5 and SHA-256. */
export const ALGORITHMS: readonly number[] = [-8, -7, -257]
const ANSWER_CHARACTERS_MAX = 6_000

/** The relying party, for which passkeys count: the issuer's host, and its origin. */
export type Party = { readonly id: string; readonly origin: string }
/** True if we made the challenge. It cannot be used again. */
export type TakeChallenge = (challenge: string) => Promise<boolean>
export type Registered = {
  readonly id: string
  readonly publicKey: string
  readonly counter: number
  readonly synced: boolean
  readonly transports: readonly string[]
}

/** The relying party; null for an IP address, which WebAuthn excludes (level 3, section 5.1.2), and for plain HTTP to another machine. */
export function partyOf(issuer: string): Party | null {
  const { protocol, hostname, origin } = new URL(issuer)
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(hostname) || hostname.startsWith('[')) return null
  return protocol === 'https:' || hostname === 'localhost' ? { id: hostname, origin } : null
}

/** The new passkey; null if any part of the answer is wrong. Throws PdpError `store_unavailable`. */
export async function verifyRegistration(text: string, take: TakeChallenge, party: Party): Promise<Registered | null> {
  const answer = parseAnswer<RegistrationResponseJSON>(text)
  if (answer === null) return null
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const challenge = await taken(answer.response.clientDataJSON, take)
  if (challenge === null) return null
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: answer,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: false,
      supportedAlgorithmIDs: [...ALGORITHMS],
    })
    if (!verified || registrationInfo.credential.id !== answer.id) return null
    const { credential, credentialDeviceType } = registrationInfo
    return {
      id: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      counter: credential.counter,
      synced: credentialDeviceType === 'multiDevice',
      transports: transportsOf(credential.transports),
    }
  } catch {
    return null
  }
}

export type Assertion = {
  readonly answer: AuthenticationResponseJSON
  /** The credential's id. */
  readonly id: string
  readonly userHandle: string | null
}

export function parseAssertion(text: string): Assertion | null {
  const answer = parseAnswer<AuthenticationResponseJSON>(text)
  if (answer === null) return null
  const { userHandle } = answer.response
  return { answer, id: answer.id, userHandle: typeof userHandle === 'string' ? userHandle : null }
}

/** Verifies the signature and returns the counter, which the caller compares: it means something only if the signature is right. */
export async function verifyAssertion(
  { answer }: Assertion,
  key: Pick<Registered, 'id' | 'publicKey' | 'synced'>,
  expected: { readonly take: TakeChallenge; readonly party: Party; readonly userVerification: boolean },
): Promise<{ readonly counter: number } | null> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const challenge = await taken(answer.response.clientDataJSON, expected.take)
  if (challenge === null) return null
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: answer,
      expectedChallenge: challenge,
      expectedOrigin: expected.party.origin,
      expectedRPID: expected.party.id,
      credential: { id: key.id, publicKey: new Uint8Array(Buffer.from(key.publicKey, 'base64url')), counter: 0 },
      requireUserVerification: expected.userVerification,
    })
    const { newCounter, credentialDeviceType } = authenticationInfo
    // WebAuthn level 3, section 7.2, step 19: whether a key can be copied never changes.
    return verified && (credentialDeviceType === 'multiDevice') === key.synced ? { counter: newCounter } : null
  } catch {
    return null
  }
}

/** The signed challenge if it was ours; null if another site's page may have asked for it in a frame. */
async function taken(clientData: string, take: TakeChallenge): Promise<string | null> {
  const { challenge, crossOrigin } = parseObject(Buffer.from(clientData, 'base64url').toString('utf8')) ?? {}
  if (typeof challenge !== 'string' || (crossOrigin !== undefined && crossOrigin !== false)) return null
  return (await take(challenge)) ? challenge : null
}

/** Parses the members that are read here; the library checks all others. */
function parseAnswer<Answer extends AuthenticationResponseJSON | RegistrationResponseJSON>(
  text: string,
): Answer | null {
  const answer = text.length <= ANSWER_CHARACTERS_MAX ? parseObject(text) : null
  const response = answer?.response
  if (typeof answer?.id !== 'string' || typeof response !== 'object' || response === null) return null
  if (!('clientDataJSON' in response) || typeof response.clientDataJSON !== 'string') return null
  return answer as unknown as Answer
}

function parseObject(text: string): { readonly [name: string]: unknown } | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

const TRANSPORT = /^[a-z-]{1,20}$/
const transportsOf = (given: unknown): readonly string[] =>
  Array.isArray(given)
    ? given.filter((one): one is string => typeof one === 'string' && TRANSPORT.test(one)).slice(0, 6)
    : []
