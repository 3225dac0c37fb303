/** Reads people that other systems have exported: a realm of Keycloak with its users, or the bulk export of Auth0. */
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { parsedObject } from './mapping.ts'

/** `lines`: JSON objects for POST /v1/users:import. `notes`: people who are left out, and steps that remain. */
type People = { readonly lines: readonly string[]; readonly notes: readonly string[] }
type Read = { readonly person: JsonObject; readonly hasHash: boolean } | 'blocked' | 'program'

/** The people in a file; null: the file has another form. */
export function readPeople(text: string): People | null {
  const users = usersOfRealm(text)
  if (users !== null) return peopleOf(users.map(fromKeycloak))
  const [first = ''] = text.trimStart().split('\n', 1)
  const sample = parsedObject(first)
  if (sample === null || auth0Id(sample) === null) return null
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return peopleOf(lines.map((line) => fromAuth0(parsedObject(line))))
}

function peopleOf(all: readonly (Read | null)[]): People {
  const read = all.filter((one) => one !== null)
  const count = (of: Read): number => read.filter((one) => one === of).length
  const found = read.filter((one) => typeof one === 'object')
  const without = found.filter(({ hasHash }) => !hasHash).length
  const parts: readonly (readonly [number, string])[] = [
    [all.length - read.length, 'cannot be read, and are left out'],
    [count('blocked'), 'are disabled, and are left out: they must not sign in here'],
    [count('program'), 'are accounts of programs, and are left out: they become clients'],
    [without, 'have no password that can be brought: they set one, or sign in at another provider'],
  ]
  return {
    lines: found.map(({ person }) => JSON.stringify(person)),
    notes: parts.flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`])),
  }
}

/** `kc.sh export` writes a realm with its users, or files with the users of a realm. */
function usersOfRealm(text: string): readonly unknown[] | null {
  if (!/"(?:realm|users)"\s*:/.test(text)) return null
  const value = parsedObject(text)
  return typeof value?.realm === 'string' && Array.isArray(value.users) ? value.users : null
}

function fromKeycloak(value: unknown): Read | null {
  if (!isJsonObject(value) || typeof value.id !== 'string') return null
  if (value.serviceAccountClientId != null) return 'program'
  if (value.enabled === false) return 'blocked'
  const { firstName, lastName, credentials } = value
  const name = [firstName, lastName].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const hashes = Array.isArray(credentials) ? credentials.map(keycloakHash) : []
  return personOf({
    id: value.id,
    name,
    email: value.email,
    verified: value.emailVerified,
    hash: hashes.find((hash) => hash !== null),
  })
}

/** The hash in PHC form; null for another kind of credential, and for a hash that cannot be verified here. */
function keycloakHash(value: unknown): string | null {
  if (!isJsonObject(value) || value.type !== 'password') return null
  const [secret, data] = [parsedObject(String(value.secretData)), parsedObject(String(value.credentialData))]
  if (secret === null || data === null) return null
  const [salt, hash] = [unpadded(secret.salt), unpadded(secret.value)]
  const { algorithm, hashIterations: rounds } = data
  const [, digest] = /^pbkdf2(?:-(sha256|sha512))?$/.exec(String(algorithm)) ?? [null, null]
  if (digest !== null) return `$pbkdf2-${digest ?? 'sha1'}$i=${Number(rounds)}$${salt}$${hash}`
  if (algorithm !== 'argon2' || !isJsonObject(data.additionalParameters)) return null
  const parameters = data.additionalParameters
  const one = (name: string): string => (Array.isArray(parameters[name]) ? String(parameters[name][0]) : '')
  // The versions 1.0 and 1.3 of Keycloak are 16 and 19 in the PHC form.
  const version = one('version') === '1.0' ? 16 : 19
  return `$argon2${one('type')}$v=${version}$m=${one('memory')},t=${Number(rounds)},p=${one('parallelism')}$${salt}$${hash}`
}

const unpadded = (base64: unknown): string => String(base64).replace(/=+$/, '')

/** The `sub` claim in Auth0's tokens. */
function auth0Id({ user_id: id, _id: oid }: JsonObject): string | null {
  if (typeof id === 'string') return id
  return isJsonObject(oid) && typeof oid.$oid === 'string' ? `auth0|${oid.$oid}` : null
}

function fromAuth0(value: JsonObject | null): Read | null {
  const id = value === null ? null : auth0Id(value)
  if (value === null || id === null) return null
  if (value.blocked === true) return 'blocked'
  const { email, email_verified: verified, name, passwordHash, password_hash } = value
  return personOf({ id, name, email, verified, hash: passwordHash ?? password_hash })
}

function personOf(of: {
  readonly id: string
  readonly name: unknown
  readonly email: unknown
  readonly verified: unknown
  readonly hash: unknown
}): Read {
  const email = typeof of.email === 'string' && of.email !== '' ? of.email : null
  const name = typeof of.name === 'string' && of.name !== '' ? of.name : null
  const hasHash = typeof of.hash === 'string' && of.hash !== ''
  const person = {
    id: of.id,
    ...(email === null ? {} : { email, email_verified: of.verified === true }),
    ...(name === null ? {} : { name }),
    ...(hasHash ? { password_hash: String(of.hash) } : {}),
  }
  return { person, hasHash }
}
