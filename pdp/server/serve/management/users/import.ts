/** Imports another system's people with their password hashes: the whole file or nothing. */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY } from '../../../../shared/domain/journal.ts'
import { isStream, piecesOf } from '../../http/bodies.ts'
import { whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addManagementRoute, ok } from '../route.ts'
import { LINES_MAX, type ReadUser, readUserLines, wrongLines } from './user-lines.ts'

const PIECE_TIMEOUT_MS = 30_000

export function addUserImport(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: never; body: unknown; query: { dry_run?: string }; prepared: readonly ReadUser[] }>(
    app,
    deps,
    {
      tag: 'Users',
      scope: 'directory:write',
      organizationScope: 'environment',
      method: 'POST',
      path: '/v1/users::import',
      operation: 'importUsers',
      summary: `Creates the users of up to ${LINES_MAX} lines, all or none. A password hash of another system becomes one of ours at the user's first sign-in.`,
      bodies: ['lines'],
      // A schema would be applied to the stream object's own members.
      body: {
        description:
          'A JSON object on each line: `id`, and optionally `email`, `email_verified`, `name` and `password_hash`, which is of bcrypt, Argon2, PBKDF2 or scrypt in PHC or modular crypt form.',
      },
      query: {
        dry_run: { type: 'string', enum: ['true', 'false'], description: 'true: checks only, writes nothing.' },
      },
      answer: whole({ users: { type: 'integer' }, dry_run: { type: 'boolean' } }),
      lengthy: true,
      locks: () => [DIRECTORY],
      // The file is read before the lock, so that a slow sender delays no one.
      prepare: async ({ body }) => {
        if (!isStream(body))
          throw new RequestProblem('media_type_unsupported', 'send the lines as application/x-ndjson')
        return readUserLines(piecesOf(body, PIECE_TIMEOUT_MS))
      },
      async handle({ at, query, context }, read) {
        const dryRun = query.dry_run === 'true'
        const users = read.map(({ user }) => user)
        const issues = await at.directory.importUsers(users, { context, dryRun })
        if (issues.length > 0)
          throw wrongLines(issues.map(({ index, message }) => ({ place: String(read[index]?.line), message })))
        return ok({ users: users.length, dry_run: dryRun })
      },
    },
  )
}
