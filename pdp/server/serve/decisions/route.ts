/** `POST /oauth/decisions`: the bearer's permissions and the organization's entitlements in one round trip. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { PermissionResult } from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { type CredentialDeps, presentedToken, provesKey } from '../authentication/credentials.ts'
import { PROBLEM_RESPONSE, text } from '../http/schemas.ts'
import { SUCCESS } from '../http/status.ts'
import type { Answer, AnswerQuestion, Question } from './answer.ts'
import { type AskedFromDeps, askedFrom } from './asked-from.ts'
import {
  ASKED_SUBJECT,
  CLIENTS,
  CONTEXT,
  NAME,
  readActing,
  readSubject,
  readSupposed,
  relocated,
  SCOPES,
  SUPPOSED,
  type SubjectBody,
  type SupposedBody,
} from './question-schemas.ts'

const CHECKS_MAX = 256
const ENTITLEMENTS_MAX = 256

type Body = SupposedBody & {
  readonly permissions?: Question['permissions']
  readonly entitlements?: readonly string[]
  readonly subject?: SubjectBody
  readonly context?: JsonObject
  readonly explain?: boolean
  readonly app?: string
  readonly actors?: readonly string[]
  readonly scopes?: readonly string[]
}
const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    permissions: {
      type: 'array',
      maxItems: CHECKS_MAX,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['relation', 'resource'],
        properties: {
          relation: { ...NAME, description: 'A relation, or a permission key for app and organization resources.' },
          resource: { ...NAME, description: '<type>:<id>' },
        },
      },
    },
    entitlements: { type: 'array', maxItems: ENTITLEMENTS_MAX, items: NAME },
    subject: {
      ...ASKED_SUBJECT,
      description: 'Another subject of the organization. Needs a client_credentials token with scope decisions:read.',
    },
    context: { ...CONTEXT, description: `${CONTEXT.description} Needs decisions:read as well.` },
    ...SUPPOSED,
    contextual_tuples: {
      ...SUPPOSED.contextual_tuples,
      description: `${SUPPOSED.contextual_tuples.description} Needs decisions:read as well.`,
    },
    app: {
      ...text('^[\\x21\\x22\\x24-\\x7e]{1,256}$', 'the id of an app, or *'),
      description:
        'The app whose roles count for permission keys on the organization; `*`: the app of the token, or every app where it has none, which the reason names. Absent: the app of the token. Needs decisions:read as well.',
    },
    actors: {
      ...CLIENTS,
      description:
        'Clients that act for the subject, the last one first: allowed is what all may, where the app says actors: both. Needs decisions:read as well.',
    },
    scopes: { ...SCOPES, description: 'Scopes of the token by which they act.' },
    explain: { type: 'boolean', description: 'Adds a reason to each permission. Also needs the scope decisions:read.' },
  },
} as const

const SUBJECT = {
  type: ['object', 'null'],
  required: ['type', 'id'],
  properties: { type: { type: 'string' }, id: { type: 'string' }, relation: { type: 'string' } },
}
const ANSWER = {
  description:
    'Allowed or denied, item by item. A token that is inactive, or has no organization, is denied everything.',
  type: 'object',
  required: ['subject', 'organization', 'permissions', 'entitlements'],
  properties: {
    subject: SUBJECT,
    organization: { type: ['string', 'null'] },
    permissions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['relation', 'resource', 'allowed'],
        properties: {
          relation: { type: 'string' },
          resource: { type: 'string' },
          allowed: { type: 'boolean' },
          error: { type: 'string', description: 'Why the item could not be decided. `allowed` is then false.' },
          missing_context: {
            type: 'array',
            items: { type: 'string' },
            description: 'With error condition_failed: parameters of conditions that the context lacks.',
          },
          reason: {
            type: 'object',
            description:
              'code and its message, path (the chain of grants), missing (tuples, any one of which would allow it), reached (the steps that lead to them), details (of a denial, in words).',
          },
        },
      },
    },
    entitlements: {
      type: 'object',
      additionalProperties: {
        type: ['object', 'null'],
        required: ['value', 'version'],
        properties: { value: { type: 'object' }, version: { type: 'integer' } },
      },
    },
  },
}

/** Lets pages of any origin call: calls take tokens, never cookies. Set on the raw response, so that errors have these fields, too. */
const CORS = Object.entries({
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'Authorization, DPoP, Content-Type',
  'access-control-allow-methods': 'POST',
  'access-control-expose-headers':
    'WWW-Authenticate, Portcullis-Decision-Id, Portcullis-Revision, X-Request-Id, Retry-After',
})
const allowPages = ({ raw }: FastifyReply): void => {
  for (const [name, value] of CORS) raw.setHeader(name, value)
}

/** Adds the route, and answers the preflight of browsers. */
export function addDecisions(
  app: FastifyInstance,
  deps: CredentialDeps &
    AskedFromDeps & {
      readonly recognize: (token: string) => Promise<TokenState>
      readonly answer: AnswerQuestion
    },
): void {
  app.options('/oauth/decisions', {
    schema: { hide: true },
    handler: (_request, reply) => {
      allowPages(reply)
      return reply.code(SUCCESS.empty).send()
    },
  })
  app.post<{ Body: Body }>('/oauth/decisions', {
    config: { deadline: 'decision' },
    schema: {
      operationId: 'decide',
      summary: 'Answers permission and entitlement questions about the bearer of the token.',
      tags: ['Decisions'],
      security: [{ bearer: [] }],
      body: BODY,
      response: { [SUCCESS.ok]: ANSWER, default: PROBLEM_RESPONSE },
    },
    onRequest: async (request, reply) => {
      allowPages(reply)
      presentedToken(deps.issuer, request.raw)
    },
    handler: async (request, reply) => {
      const presented = presentedToken(deps.issuer, request.raw)
      const token = await deps.recognize(presented.token)
      // A resource server may ask about a token's bearer without proof: it cannot prove the key of a token that it received.
      const provenKey = token.active && (await provesKey(deps, request.raw, { ...presented, state: token }))
      const { permissions = [], entitlements = [], subject: named, explain = false } = request.body
      const subject = named === undefined ? null : readSubject(named)
      const { context } = request.body
      const question = {
        permissions,
        entitlements,
        subject,
        explain,
        ...readSupposed(request.body),
        ...askedFrom(request, deps),
        provenKey,
        ...readActing(request.body),
        ...(request.body.app !== undefined && { app: request.body.app }),
        ...(context !== undefined && { context }),
      }
      const answer = await relocated(deps.answer(token, question))
      reply.header('cache-control', 'no-store').header('portcullis-decision-id', answer.decisionId)
      if (answer.revision !== null) reply.header('portcullis-revision', answer.revision)
      return present(answer)
    },
  })
}

function present(answer: Answer) {
  return {
    subject: answer.subject,
    organization: answer.organization,
    permissions: answer.permissions.map(presentPermission),
    entitlements: Object.fromEntries(
      [...answer.entitlements].map(([key, result]) => [
        key,
        result && { value: result.value, version: result.version },
      ]),
    ),
  }
}

function presentPermission({ relation, resource, allowed, error, reason, missingContext }: PermissionResult) {
  return {
    relation,
    resource,
    allowed,
    ...(error === undefined ? {} : { error }),
    ...(missingContext === undefined ? {} : { missing_context: missingContext }),
    ...(reason === undefined ? {} : { reason }),
  }
}
