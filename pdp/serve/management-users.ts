/** People who can sign in. They belong to the environment, so only an unbound client manages them. */
import type { FastifyInstance } from 'fastify'
import { hashSecret, verifySecret } from '../identity/secrets.ts'
import { DIRECTORY, type WriteContext } from '../store/contracts.ts'
import type { Directory, Sql, User } from '../store/directory.ts'
import { addManagementRoute, EMPTY, type ManagementDeps, ok, put } from './management-route.ts'
import { type PageQuery, readPage } from './pages.ts'
import { ID, LABEL, object, text } from './schemas.ts'
import { Refusal } from './status.ts'

/** What of the identity service these calls use. */
export type UserControl = {
  readonly sessions: {
    /** Ends all sign-ins of a person inside the caller's transaction; nothing may follow it there. */
    endUser(sql: Pick<Sql, 'query'>, user: string, context: WriteContext): Promise<unknown>
  }
  readonly secondFactor: {
    enroll(user: string, context: WriteContext): Promise<{ readonly secret: string; readonly uri: string }>
    remove(user: string, context: WriteContext): Promise<boolean>
  }
}
type UserBody = {
  readonly email?: string
  readonly email_verified?: boolean
  readonly name?: string
  readonly password?: string
}
const EMAIL = {
  ...text('^[^\\s@\\u0000-\\u001f\\u007f]+@[^\\s@\\u0000-\\u001f\\u007f]+$', 'an e-mail address'),
  maxLength: 254,
}
const BODY = object({
  email: EMAIL,
  email_verified: { type: 'boolean' },
  name: LABEL,
  password: {
    type: 'string',
    minLength: 8,
    maxLength: 256,
    description: 'Stored hashed and never returned; when absent, the stored one stays. Another one ends all sessions.',
  },
})
const USER = object(
  {
    id: ID,
    email: { ...EMAIL, type: ['string', 'null'] },
    email_verified: { type: 'boolean' },
    name: { ...LABEL, type: ['string', 'null'] },
  },
  ['id', 'email', 'email_verified', 'name'],
)

const PATH = '/v1/users/:user'
const COMMON = { tag: 'Users', scope: 'directory:write', bounds: 'environment' } as const

export function addUsers(app: FastifyInstance, deps: ManagementDeps & UserControl): void {
  const { directory, sessions } = deps
  addManagementRoute<{ params: 'user'; body: UserBody }>(app, deps, {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putUser',
    summary: 'Creates a user, or replaces what is known of one. A deleted id is never given out again.',
    body: BODY,
    answer: USER,
    async handle({ params, body, context }) {
      if (body.email_verified === true && body.email === undefined) {
        throw new Refusal('request_invalid', 'there is no e-mail address that could be verified', {
          mistakes: [{ place: '/email_verified', message: 'is true without an email' }],
        })
      }
      const existing = await directory.user(params.user)
      const user: User = {
        id: params.user,
        email: body.email ?? null,
        emailVerified: body.email_verified ?? false,
        name: body.name ?? null,
      }
      const isNew = body.password !== undefined && !(await isPassword(directory, existing, body.password))
      if (isNew) {
        const passwordHash = await hashSecret(body.password ?? '')
        await directory.putUser({ ...user, passwordHash }, context, (sql) => sessions.endUser(sql, user.id, context))
      } else await directory.putUser(user, context)
      return put(existing !== null, present(user))
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteUser',
    summary: 'Deletes a user, with memberships and tokens.',
    answer: null,
    async handle({ params, context }) {
      if (!(await directory.deleteUser(params.user, context)))
        throw new Refusal('not_found', `there is no user ${params.user}`)
      return EMPTY
    },
  })
  addUserReads(app, deps)
  addAuthenticators(app, deps)
}

/** Putting what is there already changes nothing, and signs nobody out. */
async function isPassword(directory: Directory, user: User | null, password: string): Promise<boolean> {
  const stored = user?.email == null ? null : await directory.userByEmail(user.email)
  return stored?.passwordHash != null && stored.id === user?.id && verifySecret(password, stored.passwordHash)
}

function addAuthenticators(app: FastifyInstance, { secondFactor, ...deps }: ManagementDeps & UserControl): void {
  const path = '/v1/users/:user/totp'
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'POST',
    path,
    operation: 'postAuthenticator',
    summary:
      'Gives the user an authenticator app, from now on asked for at every sign-in. Its secret is returned this once.',
    answer: object(
      {
        secret: { type: 'string', description: 'Base32, to type in.' },
        otpauth_uri: { type: 'string', description: 'The same, to show as a QR code.' },
      },
      ['secret', 'otpauth_uri'],
    ),
    async handle({ params, context }) {
      const { secret, uri } = await secondFactor.enroll(params.user, context)
      return ok({ secret, otpauth_uri: uri })
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path,
    operation: 'deleteAuthenticator',
    summary: 'Takes the authenticator app away, and ends all sessions of the user.',
    answer: null,
    async handle({ params, context }) {
      if (await secondFactor.remove(params.user, context)) return EMPTY
      throw new Refusal('not_found', `there is no user ${params.user} with an authenticator`)
    },
  })
}

function addUserReads(app: FastifyInstance, deps: ManagementDeps): void {
  const { directory } = deps
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getUser',
    summary: 'One user.',
    answer: USER,
    async handle({ params }) {
      const user = await directory.user(params.user)
      if (user === null) throw new Refusal('not_found', `there is no user ${params.user}`)
      return ok(present(user))
    },
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/users',
    operation: 'listUsers',
    summary: 'Users by id.',
    answer: USER,
    list: true,
    async handle({ query }) {
      const page = await readPage(deps.store, query, {
        log: DIRECTORY,
        read: (range) => directory.users(range),
        key: ({ id }) => id,
      })
      return ok({ ...page, items: page.items.map(present) })
    },
  })
}

function present({ id, email, emailVerified, name }: User) {
  return { id, email, email_verified: emailVerified, name }
}
