/** Makes the tokens and proofs that attack files describe, well formed or not. */
import { createHash, createHmac, type KeyObject, randomUUID, sign } from 'node:crypto'
import { exportJWK } from 'jose'
import { ecKeys, type KeyPair, rsaKeys, thumbprint } from '../sidecar/support/issuer.ts'
import { Skip, type TokenDelta } from './cases.ts'

type Members = { [name: string]: unknown }
export type Keyring = (name: string) => KeyPair

/** One key pair for each name, made when first asked for; `client…` are EC keys as DPoP clients use. */
export function createKeyring(): Keyring {
  const pairs = new Map<string, KeyPair>()
  return (name) => {
    const pair = pairs.get(name) ?? (name.startsWith('client') ? ecKeys() : rsaKeys())
    pairs.set(name, pair)
    return pair
  }
}

type Bases = {
  /** The fixture's, with those of the case over them. */
  readonly definitions: { readonly [name: string]: TokenDelta }
  /** The fixture's. */
  readonly given: { readonly [name: string]: TokenDelta }
}
export type MintOptions = Bases & {
  readonly delta: TokenDelta
  readonly keyring: Keyring
  readonly nowSeconds: number
  /** Replaces `<…>` values and `{{…}}` placeholders in claims. */
  readonly fill: (value: string) => Promise<string>
}

const TIMES = new Set(['iat', 'exp', 'nbf', 'auth_time'])
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export async function mint(options: MintOptions): Promise<string> {
  const delta = flatten(options.delta, options)
  if (delta.jwe !== undefined) return `${base64url({ alg: 'dir', enc: 'A256GCM', zip: 'DEF' })}..AAAA.AAAA.AAAA`
  const header = await resolveMembers(delta.header ?? {}, options)
  const claims = await resolveMembers(delta.claims ?? {}, options)
  for (const name of delta.drop ?? []) delete claims[name]
  const keyName = delta.key ?? 'as1'
  if (typeof header.jwk === 'string')
    header.jwk = await exportJWK(options.keyring(keyName.startsWith('hmac') ? 'client1' : keyName).publicKey)
  const payload =
    delta.rawPayload === undefined ? base64url(claims) : Buffer.from(delta.rawPayload).toString('base64url')
  const input = `${base64url(header)}.${mutated(payload, delta.mutate)}`
  return `${input}.${await signature(input, { delta, keyName, header, keyring: options.keyring })}`
}

/** A case's own token may be based on the fixture's of the same name. */
function flatten(delta: TokenDelta, options: Bases, seen: readonly string[] = []): TokenDelta {
  const { base: name } = delta
  const times = seen.filter((one) => one === name).length
  const parent = name === undefined ? {} : [options.definitions[name], options.given[name]][times]
  if (parent === undefined) throw new Skip(`the token ${name} is not defined${times > 0 ? ', but by itself' : ''}`)
  const base = name === undefined ? {} : flatten(parent, options, [...seen, name])
  const merged = {
    ...base,
    ...delta,
    header: { ...base.header, ...delta.header },
    claims: { ...base.claims, ...delta.claims },
  }
  return { ...merged, drop: [...(base.drop ?? []), ...(delta.drop ?? [])] }
}

async function resolveMembers(members: Members, options: MintOptions): Promise<Members> {
  const resolved: Members = {}
  for (const [name, value] of Object.entries(members)) {
    // A header member of null is left out; of a claim, null is a value.
    if (value === null && name !== 'cnf') continue
    resolved[name] = await resolveValue(name, value, options)
  }
  return resolved
}

async function resolveValue(name: string, value: unknown, options: MintOptions): Promise<unknown> {
  if (typeof value === 'string') {
    if (TIMES.has(name) && /^[+-]?\d+(?:\.\d+)?$/.test(value)) return options.nowSeconds + Number(value)
    if (/^".*"$/.test(value)) return JSON.parse(value)
    if (value === '<random>') return randomUUID()
    return options.fill(value)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return resolveMembers({ ...value }, options)
}

function mutated(payload: string, mutate: string | undefined): string {
  if (mutate === undefined) return payload
  if (/append '=' and '\+' to payload/.test(mutate)) return `${payload}=+`
  throw new Skip(`the mutation is prose that this runner does not know: ${mutate}`)
}

async function signature(
  input: string,
  { delta, keyName, header, keyring }: { delta: TokenDelta; keyName: string; header: Members; keyring: Keyring },
): Promise<string> {
  if (delta.sig === 'zeros') return Buffer.alloc(64).toString('base64url')
  if (delta.sig !== undefined) return delta.sig
  if (keyName.startsWith('hmac:'))
    return createHmac('sha256', await secretOf(keyName.slice(5), keyring))
      .update(input)
      .digest('base64url')
  const { privateKey } = keyring(keyName)
  const bytes = Buffer.from(input)
  if (privateKey.asymmetricKeyType === 'ec')
    return sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  return sign(header.alg === 'RS512' ? 'sha512' : 'sha256', bytes, privateKey).toString('base64url')
}

/** Public keys as an attacker could use them for HMAC. */
async function secretOf(name: string, keyring: Keyring): Promise<string> {
  const publicKey: KeyObject = keyring('as1').publicKey
  if (name.endsWith('.public.pem')) return publicKey.export({ type: 'spki', format: 'pem' }).toString()
  if (name === 'jwk.n') return (await exportJWK(publicKey)).n ?? ''
  return name
}

export const thumbprintOf = (keyring: Keyring, name: string): Promise<string> => thumbprint(keyring(name).publicKey)

export const digestOf = (token: string): string => createHash('sha256').update(token).digest('base64url')
