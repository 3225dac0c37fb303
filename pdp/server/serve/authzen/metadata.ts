/** `/.well-known/authzen-configuration`: where the AuthZEN endpoints are (section 9), said by the issuer and never by a Host field. */
import type { FastifyInstance } from 'fastify'
import { PUBLIC_CACHE_SECONDS } from '../../../identity/oauth/durations.ts'
import { mountOf, PATHS, urlOf } from '../../../identity/oauth/paths.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { AUTHZEN_PATHS } from './paths.ts'

export type MetadataDeps = {
  readonly issuer: string
  /** A JWT of these claims, signed with the issuer's active key. */
  readonly signStatement: (claims: JsonObject) => Promise<string>
}

export function addMetadata(app: FastifyInstance, deps: MetadataDeps): void {
  const { issuer } = deps
  const document: JsonObject = {
    policy_decision_point: issuer,
    access_evaluation_endpoint: urlOf(issuer, AUTHZEN_PATHS.evaluation),
    access_evaluations_endpoint: urlOf(issuer, AUTHZEN_PATHS.evaluations),
    search_subject_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchSubject),
    search_resource_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchResource),
    search_action_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchAction),
  }
  // The well-known part goes between the host and the path of the PDP's id; a proxy may have cut that path off.
  for (const url of new Set([PATHS.authzenMetadata, PATHS.authzenMetadata + mountOf(issuer)])) {
    app.get(url, {
      // Like the rest of discovery, it is not one of our calls.
      schema: { hide: true },
      handler: async (_request, reply) => {
        reply.header('cache-control', `public, max-age=${PUBLIC_CACHE_SECONDS}`)
        // Caches keep the answer. A key that was replaced is never the one that signed.
        return { ...document, signed_metadata: await deps.signStatement({ iss: issuer, ...document }) }
      },
    })
  }
}
