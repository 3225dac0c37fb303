/** Ending browser sessions from outside, with every token that depends on them. */
import type { FastifyInstance } from 'fastify'
import type { WriteContext } from '../store/contracts.ts'
import { addManagementRoute, EMPTY, type ManagementDeps, ok } from './management-route.ts'
import { ID, object } from './schemas.ts'
import { Refusal } from './status.ts'

/** What of the identity service these calls use. */
export type SessionControl = {
  readonly sessions: {
    revokeSession(uid: string, context: WriteContext): Promise<boolean>
    revokeUser(user: string, context: WriteContext): Promise<readonly string[]>
  }
}

export function addSessions(app: FastifyInstance, deps: ManagementDeps & SessionControl): void {
  const common = { tag: 'Sessions', scope: 'sessions:revoke', bounds: 'environment' } as const
  addManagementRoute<{ params: 'session' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: '/v1/sessions/:session',
    operation: 'revokeSession',
    summary: 'Ends a browser session and the tokens that live as long as it does.',
    answer: null,
    async handle({ params, context }) {
      if (!(await deps.sessions.revokeSession(params.session, context))) {
        throw new Refusal('not_found', 'there is no such session')
      }
      return EMPTY
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    method: 'POST',
    // Two colons: the path has one.
    path: '/v1/users/:user/sessions::revoke',
    operation: 'revokeUserSessions',
    summary: 'Ends all sessions of a person and all their tokens, offline ones too.',
    answer: object({ sessions: { type: 'array', items: ID } }, ['sessions']),
    async handle({ params, context }) {
      if ((await deps.directory.user(params.user)) === null) {
        throw new Refusal('not_found', `there is no user ${params.user}`)
      }
      return ok({ sessions: await deps.sessions.revokeUser(params.user, context) })
    },
  })
}
