/** Makes the tokens and proofs that attack files describe, well formed or not. */
import { constants, createHash, createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { exportJWK } from 'jose'
import { ecKeys, type KeyPair, rsaKeys, thumbprint } from '../support/peers/issuer.ts'
import { type TokenDelta, Unknown } from './case-format.ts'
import { mutated } from './mutations.ts'

type Members = { [name: string]: unknown }
export type Keyring = (name: string) => KeyPair

/** By name: whose it is, or which kind of key a client has. */
const KINDS: readonly (readonly [RegExp, (bits: string | undefined) => KeyPair])[] = [
  [/^(?:as\d*|attacker|other|rotated|evil|rogue|k\d+|issuer\d*|old|new)$/, rsaKeys],
  [/^client\d*$/, ecKeys],
  [/^(?:weak_?)?rsa_?(\d{3,5})$/, (bits) => generateKeyPairSync('rsa', { modulusLength: Number(bits) })],
  [/^rsa\d?$/, rsaKeys],
  [/^(?:ec|p256|es256)$/, ecKeys],
  [/^(?:p|es)384$/, () => generateKeyPairSync('ec', { namedCurve: 'P-384' })],
  [/^(?:p521|es512)$/, () => generateKeyPairSync('ec', { namedCurve: 'P-521' })],
  [/^(?:secp256k1|es256k)$/, () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' })],
  [/^(?:ed25519|eddsa|okp)$/, () => generateKeyPairSync('ed25519')],
]

/** One key pair for each name, made when first asked for; `client…` are EC keys as DPoP clients use. */
export function createKeyring(): Keyring {
  const pairs = new Map<string, KeyPair>()
  return (name) => {
    const pair = pairs.get(name) ?? makeKeys(name)
    pairs.set(name, pair)
    return pair
  }
}

function makeKeys(name: string): KeyPair {
  const kind = name
    .toLowerCase()
    .replaceAll('-', '')
    .replace(/^client_?(?=\D)/, '')
  for (const [form, make] of KINDS) {
    const match = form.exec(kind)
    if (match !== null) return make(match[1])
  }
  throw new Unknown(`the key ${name} is not known`)
}

export type Bases = {
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
  if (delta.jwe !== undefined) return encrypted(delta.jwe)
  const header = await resolveMembers(delta.header ?? {}, options)
  const claims = await resolveMembers(delta.claims ?? {}, options)
  for (const name of delta.drop ?? []) delete claims[name]
  const keyName = delta.key ?? 'as1'
  if (typeof header.jwk === 'string') header.jwk = await jwkOf(header.jwk, { ...options, keyName })
  const payload =
    delta.rawPayload === undefined
      ? base64url(claims)
      : Buffer.from(await options.fill(delta.rawPayload)).toString('base64url')
  const parts = { header: base64url(header), payload }
  return mutated(parts, {
    prose: delta.mutate,
    sign: (input) => signature(input, { delta, keyName, header, keyring: options.keyring }),
  })
}

/** `NAME.public`, `NAME.private`: of that key. A case that replaces only the key of its base shows the one it signs with. */
async function jwkOf(text: string, { keyring, keyName, delta }: MintOptions & { keyName: string }): Promise<unknown> {
  const [, name = '', half] = /^([\w-]+)\.(public|private|pair)$/.exec(text) ?? []
  if (half === undefined) throw new Unknown(`the jwk ${text} is not known`)
  const replaced = delta.header?.jwk === undefined && !keyName.startsWith('hmac:')
  const pair = keyring(replaced ? keyName : name)
  return exportJWK(half === 'public' ? pair.publicKey : pair.privateKey)
}

const JWE = /^(dir|RSA-OAEP(?:-256)?|A\d{3}KW|ECDH-ES)\/(A\d{3}(?:GCM|CBC-HS\d{3}))(?: zip=(DEF))?(?: bomb)?$/

/** Five parts, of which nobody here has a key to look into the last ones. */
function encrypted(text: string): string {
  const [, alg, enc, zip] = JWE.exec(text) ?? []
  if (alg === undefined) throw new Unknown(`the JWE ${text} is not known`)
  return `${base64url({ alg, enc, ...(zip !== undefined && { zip }) })}..AAAA.AAAA.AAAA`
}

/** Seconds from its making to its end, where the case says so; null: it has none that is relative. */
export function lifetimeOf(delta: TokenDelta, bases: Bases): number | null {
  const exp = flatten(delta, bases).claims?.exp
  return typeof exp === 'string' && /^\+\d+(?:\.\d+)?$/.test(exp) ? Number(exp) : null
}

/** The claim as a case writes it; undefined: it has none. */
export const claimOf = (delta: TokenDelta, bases: Bases, name: string): unknown => flatten(delta, bases).claims?.[name]

/** A case's own token may be based on the fixture's of the same name. */
function flatten(delta: TokenDelta, options: Bases, seen: readonly string[] = []): TokenDelta {
  const { base: name } = delta
  const times = seen.filter((one) => one === name).length
  const parent = name === undefined ? {} : [options.definitions[name], options.given[name]][times]
  if (parent === undefined) throw new Unknown(`the token ${name} is not defined${times > 0 ? ', but by itself' : ''}`)
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
  if (Array.isArray(value)) return Promise.all(value.map((one: unknown) => resolveValue('', one, options)))
  if (typeof value !== 'object' || value === null) return value
  return resolveMembers({ ...value }, options)
}

async function signature(
  input: string,
  { delta, keyName, header, keyring }: { delta: TokenDelta; keyName: string; header: Members; keyring: Keyring },
): Promise<string> {
  if (delta.sig === 'zeros') return Buffer.alloc(64).toString('base64url')
  if (delta.sig !== undefined && delta.sig !== 'der') return delta.sig
  if (keyName.startsWith('hmac:'))
    return createHmac('sha256', await secretOf(keyName.slice(5), keyring))
      .update(input)
      .digest('base64url')
  const { privateKey } = keyring(keyName)
  const bytes = Buffer.from(input)
  const type = privateKey.asymmetricKeyType
  if (type === 'ed25519') return sign(null, bytes, privateKey).toString('base64url')
  const digest = `sha${/^[REP]S(384|512)$/.exec(String(header.alg))?.[1] ?? 256}`
  if (type === 'ec')
    return sign(digest, bytes, {
      key: privateKey,
      dsaEncoding: delta.sig === 'der' ? 'der' : 'ieee-p1363',
    }).toString('base64url')
  const padding = String(header.alg).startsWith('PS') ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING
  return sign(digest, bytes, { key: privateKey, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }).toString(
    'base64url',
  )
}

/** What an attacker could use for HMAC: public keys in their forms, nothing, or a word. */
async function secretOf(name: string, keyring: Keyring): Promise<string> {
  const publicKey: KeyObject = keyring('as1').publicKey
  const pem = /^(\w+)\.public\.pem$/.exec(name)?.[1]
  if (pem !== undefined) return keyring(pem).publicKey.export({ type: 'spki', format: 'pem' }).toString()
  if (name === 'jwk.n') return (await exportJWK(publicKey)).n ?? ''
  if (name === 'jwk' || name === 'jwk.json') return JSON.stringify(await exportJWK(publicKey))
  if (/^\w*$/.test(name)) return name
  throw new Unknown(`the HMAC key ${name} is not known`)
}

export const thumbprintOf = (keyring: Keyring, name: string): Promise<string> => thumbprint(keyring(name).publicKey)

export const digestOf = (token: string): string => createHash('sha256').update(token).digest('base64url')
