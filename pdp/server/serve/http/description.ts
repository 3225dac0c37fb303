/** The API's description in OpenAPI, at /openapi.json. */
import type { FastifyInstance } from 'fastify'
import { SERVICE_SCOPES } from '../../../identity/oauth/scopes.ts'
import { type ConstantAnswer, constantAnswer } from '../../../shared/process/http/constant-answer.ts'
import { sendConstant } from './conditions.ts'
import { withNamedSchemas } from './named-schemas.ts'
import { OAUTH_PATHS } from './oauth-description.ts'

/** The description without the calls, which are added from their routes. */
export function descriptionBase(issuer: string) {
  const scopes = Object.fromEntries(SERVICE_SCOPES.map((scope) => [scope, scope]))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version: '1',
      description:
        'Decisions, management and OAuth. Errors are RFC 9457 problem details; those of OAuth are RFC 6749 section 5.2.',
    },
    servers: [{ url: issuer }],
    components: {
      securitySchemes: {
        bearer: {
          type: 'oauth2' as const,
          flows: { clientCredentials: { tokenUrl: new URL('/oauth/token', issuer).href, scopes } },
        },
        client: { type: 'http' as const, scheme: 'basic', description: 'Id and secret of a client.' },
      },
    },
  }
}

export function addDescription(app: FastifyInstance): void {
  let answer: ConstantAnswer | null = null
  app.get('/openapi.json', { schema: { hide: true } }, (request, reply) => {
    answer ??= describe(app)
    return sendConstant(request, reply, { answer, type: 'application/json' })
  })
}

function describe(app: FastifyInstance): ConstantAnswer {
  const calls = app.swagger()
  return constantAnswer(withNamedSchemas({ ...calls, paths: { ...calls.paths, ...OAUTH_PATHS } }))
}
