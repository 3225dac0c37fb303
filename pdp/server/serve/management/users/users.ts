/** Users who can sign in. They belong to the environment, so only an unbound client manages them. */
import type { FastifyInstance } from 'fastify'
import type { Directory, User } from '../../../../engine/store/directory.ts'
import { BusyError, createSemaphores, type Semaphore } from '../../../../identity/limits/attempts.ts'
import {
  ADDRESS_CHARACTERS_MAX,
  ADDRESS_FORM,
  ADDRESS_PATTERN,
  isAddress,
} from '../../../../identity/people/invitations/mail-address.ts'
import { hashSecret, verifySecret } from '../../../../identity/people/passwords/password-hash.ts'
import { DIRECTORY, TOKENS } from '../../../../shared/domain/journal.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { ID, LABEL, object, text, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, okPage, put } from '../route.ts'
import { requireAuthorityOverUser } from './user-authority.ts'

export const EMAIL = { ...text(ADDRESS_PATTERN, ADDRESS_FORM), maxLength: ADDRESS_CHARACTERS_MAX }

/** Refuses addresses that the schema's pattern lets pass. Throws RequestProblem `request_invalid`. */
export function requireAddress(email: string): void {
  if (isAddress(email)) return
  const issues = [{ place: '/email', message: `must be ${ADDRESS_FORM}` }]
  throw new RequestProblem('request_invalid', `/email must be ${ADDRESS_FORM}`, { issues })
}

const BODY = object({
  email: EMAIL,
  email_verified: { type: 'boolean' },
  name: LABEL,
  password: {
    type: 'string',
    minLength: 8,
    maxLength: 256,
    writeOnly: true,
    description:
      'Stored as a hash and never returned. If absent, the stored password stays. A changed password ends all sessions.',
  },
})
const USER = whole({
  id: ID,
  email: { ...EMAIL, type: ['string', 'null'] },
  email_verified: { type: 'boolean' },
  name: { ...LABEL, type: ['string', 'null'] },
})

const PATH = '/v1/users/:user'
const COMMON = { tag: 'Users', scope: 'directory:write', organizationScope: 'environment' } as const

/** Limits of password checks, each of which takes much memory or a thread. Sign-ins have a queue of their own and do not wait here. */
const PASSWORD_CHECKS = { runningMax: 2, waitingMax: 64, known: { has: () => false } }

export function addUsers(app: FastifyInstance, deps: ManagementDeps): void {
  const semaphore = createSemaphores(PASSWORD_CHECKS).people
  const route: PutRoute<{
    params: 'user'
    body: { email?: string; email_verified?: boolean; name?: string; password?: string }
    prepared: Password
    stored: User
  }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putUser',
    summary:
      'Creates or replaces a user. A caller that changes the address or the password of a person who manages Portcullis must hold the same management scopes. The id of a deleted user cannot be used again.',
    body: BODY,
    answer: USER,
    locks: ({ user }) => [{ person: user }],
    async prepare({ at, caller, params, body }) {
      if (body.email !== undefined) requireAddress(body.email)
      if (body.email_verified === true && body.email === undefined) {
        throw new RequestProblem('request_invalid', 'email_verified is true without an email', {
          issues: [{ place: '/email_verified', message: 'is true without an email' }],
        })
      }
      const { password } = body
      if (password === undefined) return { kind: 'none' }
      const prepare = () => preparePassword(at.directory, params.user, password)
      return inTurn(semaphore, prepare, caller.token.clientId)
    },
    state: ({ at, params }) => at.directory.user(params.user),
    async handle({ at, caller, params, body, context }, password) {
      const { directory, sessions } = at
      const existing = await directory.user(params.user)
      // Required also when the password stays the same, else the answer would confirm a guess, and for a new user, whom groups may name.
      if (password.kind !== 'none' || (body.email ?? null) !== (existing?.email ?? null))
        await requireAuthorityOverUser(at, caller, params.user)
      const user: User = {
        id: params.user,
        email: body.email ?? null,
        emailVerified: body.email_verified ?? false,
        name: body.name ?? null,
      }
      if (password.kind === 'same' && (await storedHash(directory, user.id)) !== password.hash) {
        throw new RequestProblem(
          'conflict',
          'another request changed the password at the same time; send this request again',
        )
      }
      if (password.kind === 'new') {
        const { hash: passwordHash } = password
        await directory.putUser({ ...user, passwordHash }, context, (sql) => sessions.endUser(sql, user.id, context))
      } else await directory.putUser(user, context)
      return put(existing !== null, present(user))
    },
  }
  addPutAndPatch(app, deps, route, {
    summary: 'Changes a user. A new address counts as not verified, unless the patch says that it is.',
    shown: present,
    settled: ({ email_verified: verified, ...merged }, { patch, before }) =>
      merged.email !== before.email && !Object.hasOwn(patch, 'email_verified')
        ? merged
        : { ...merged, ...(verified === undefined ? {} : { email_verified: verified }) },
  })
  addUserDelete(app, deps)
  addUserReads(app, deps)
  addAuthenticators(app, deps)
}

function addUserDelete(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteUser',
    summary: 'Deletes a user, with all memberships and tokens.',
    answer: null,
    locks: () => [DIRECTORY, TOKENS],
    state: ({ at, params }) => at.directory.user(params.user),
    handle: async ({ at, params: { user }, context }) =>
      done(await at.directory.deleteUser(user, context), `there is no user ${user}`),
  })
}

/** `same`: the password equals the stored one, which has this hash. */
type Password = { readonly kind: 'none' } | { readonly kind: 'same' | 'new'; readonly hash: string }

/** The hash of a password. If it is the stored one, nothing changes and sessions stay. */
async function preparePassword(directory: Directory, id: string, password: string): Promise<Password> {
  const stored = await storedHash(directory, id)
  if (stored !== null && (await verifySecret(password, stored))) return { kind: 'same', hash: stored }
  return { kind: 'new', hash: await hashSecret(password) }
}

async function inTurn<T>(semaphore: Semaphore, work: () => Promise<T>, client: string): Promise<T> {
  try {
    return await semaphore(work, client)
  } catch (err) {
    if (!(err instanceof BusyError)) throw err
    throw new RequestProblem('overloaded', 'too many passwords wait to be hashed; send this request again')
  }
}

async function storedHash(directory: Directory, id: string): Promise<string | null> {
  const user = await directory.user(id)
  const stored = user?.email == null ? null : await directory.userByEmail(user.email)
  return stored?.id === id ? stored.passwordHash : null
}

function addAuthenticators(app: FastifyInstance, deps: ManagementDeps): void {
  const path = '/v1/users/:user/totp'
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'POST',
    path,
    operation: 'postAuthenticator',
    summary:
      'Adds an authenticator app (TOTP) for the user. Every later sign-in asks for its code. The secret is returned only in this answer.',
    answer: whole({
      secret: { type: 'string', description: 'The secret in Base32, for typing.' },
      otpauth_uri: { type: 'string', description: 'The secret as a URI, for a QR code.' },
    }),
    locks: ({ user }) => [{ person: user }],
    async handle({ at, caller, params, context }) {
      await requireAuthorityOverUser(at, caller, params.user)
      const { secret, uri } = await at.secondFactor.enroll(params.user, context)
      return ok({ secret, otpauth_uri: uri })
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path,
    operation: 'deleteAuthenticator',
    summary: 'Removes the authenticator app, and ends all sessions of the user.',
    answer: null,
    locks: ({ user }) => [{ person: user }],
    async handle({ at, caller, params, context }) {
      await requireAuthorityOverUser(at, caller, params.user)
      const isDone = await at.secondFactor.remove(params.user, null, context)
      return done(isDone, `user ${params.user} does not exist or has no authenticator`)
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: '/v1/users/:user/passkeys',
    operation: 'deletePasskeys',
    summary: 'Removes all passkeys of a user who has lost them, and ends all sessions of the user.',
    answer: null,
    locks: ({ user }) => [{ person: user }],
    async handle({ at, caller, params, context }) {
      await requireAuthorityOverUser(at, caller, params.user)
      const isDone = await at.secondFactor.removePasskeys(params.user, context)
      return done(isDone, `user ${params.user} does not exist or has no passkeys`)
    },
  })
}

function addUserReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'user'; stored: User }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getUser',
    summary: 'One user.',
    answer: USER,
    state: ({ at, params }) => at.directory.user(params.user),
    handle: async ({ params, stored }) => ok(present(found(stored, `there is no user ${params.user}`))),
  })
  addManagementRoute<{ params: never; query: PageQuery & { search?: string } }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/users',
    operation: 'listUsers',
    summary: 'Users by id.',
    query: {
      search: { ...LABEL, description: 'Part of the id, the name or the e-mail address, in capitals or not.' },
    },
    answer: USER,
    list: true,
    handle: ({ query: { search = '', ...query } }) =>
      okPage(deps, query, {
        list: search === '' ? ['users'] : ['users', search],
        log: DIRECTORY,
        read: (range) => deps.directory.users({ ...range, search }),
        key: ({ id }) => id,
        shown: present,
      }),
  })
}

function present({ id, email, emailVerified, name }: User) {
  return { id, email, email_verified: emailVerified, name }
}
