/** Ends browser sessions, and every token that depends on them. */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY, TOKENS } from '../../../shared/domain/change-log.ts'
import { ID, object } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, EMPTY, ok } from './route.ts'

export function addSessions(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Sessions', scope: 'sessions:revoke', organizationScope: 'environment' } as const
  addManagementRoute<{ params: 'session' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: '/v1/sessions/:session',
    operation: 'revokeSession',
    summary: 'Ends a browser session, and the tokens that depend on it.',
    answer: null,
    locks: () => [TOKENS],
    async handle({ at, params, context }) {
      if (!(await at.sessions.revokeSession(params.session, context))) {
        throw new RequestProblem('not_found', 'there is no such session')
      }
      return EMPTY
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    method: 'POST',
    // Fastify needs two colons for one in the path.
    path: '/v1/users/:user/sessions::revoke',
    operation: 'revokeUserSessions',
    summary: 'Ends all sessions and all tokens of a user, including offline tokens.',
    answer: object({ sessions: { type: 'array', items: ID } }, ['sessions']),
    locks: () => [DIRECTORY, TOKENS],
    async handle({ at, params, context }) {
      if ((await at.directory.user(params.user)) === null) {
        throw new RequestProblem('not_found', `there is no user ${params.user}`)
      }
      return ok({ sessions: await at.sessions.revokeUser(params.user, context) })
    },
  })
}
