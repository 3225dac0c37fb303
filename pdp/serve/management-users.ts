/** People who can sign in. They belong to the environment, so only an unbound client manages them. */
import type { FastifyInstance } from 'fastify'
import { hashSecret } from '../identity/secrets.ts'
import { DIRECTORY, type User } from '../store/contracts.ts'
import { addManagementRoute, EMPTY, type ManagementDeps, ok, put } from './management-route.ts'
import { type PageQuery, readPage } from './pages.ts'
import { ID, LABEL, object, text } from './schemas.ts'
import { Refusal } from './status.ts'

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
    description: 'Stored hashed and never returned; when absent, the stored one stays.',
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

export function addUsers(app: FastifyInstance, deps: ManagementDeps): void {
  const { directory } = deps
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
      const existed = (await directory.user(params.user)) !== null
      const user: User = {
        id: params.user,
        email: body.email ?? null,
        emailVerified: body.email_verified ?? false,
        name: body.name ?? null,
      }
      const password = body.password === undefined ? {} : { passwordHash: await hashSecret(body.password) }
      await directory.putUser({ ...user, ...password }, context)
      return put(existed, present(user))
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
