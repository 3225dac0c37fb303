/** The transmitter of Shared Signals over HTTP: its metadata (SSF 1.0 section 7), and all its calls. */
import type { FastifyInstance } from 'fastify'
import { PUBLIC_CACHE_SECONDS } from '../../../identity/oauth/durations.ts'
import { mountOf, PATHS, urlOf } from '../../../identity/oauth/paths.ts'
import { constantAnswer } from '../../../shared/process/http/constant-answer.ts'
import { metadataOf, SSF_PATHS } from '../../../signals/transmitter/configuration.ts'
import { sendConstant } from '../http/conditions.ts'
import { addPolls, addStatus, addSubjects, addVerification } from './control.ts'
import { addOperator } from './operator.ts'
import type { SignalDeps } from './receivers.ts'
import { addStreams } from './streams.ts'

export function addSignals(app: FastifyInstance, deps: SignalDeps): void {
  const answer = constantAnswer(metadataOf(deps.issuer, urlOf(deps.issuer, PATHS.jwks)))
  // The well-known part goes between the host and the issuer's path; a proxy may have cut that path off.
  for (const url of new Set([SSF_PATHS.metadata, SSF_PATHS.metadata + mountOf(deps.issuer)]))
    app.get(url, {
      schema: { hide: true },
      handler: (request, reply) => {
        reply.header('cache-control', `public, max-age=${PUBLIC_CACHE_SECONDS}`)
        return sendConstant(request, reply, { answer, type: 'application/json' })
      },
    })
  for (const add of [addStreams, addStatus, addSubjects, addVerification, addPolls, addOperator]) add(app, deps)
}
