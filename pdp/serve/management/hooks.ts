/** The token hook of the environment, and the other issuers that it trusts. */
import type { FastifyInstance } from 'fastify'
import { ENVIRONMENT } from '../../domain/log.ts'
import type { TrustedIssuerDocument } from '../../identity/tokens/external-issuers.ts'
import { isLoopback, urlHost } from '../../process/listen.ts'
import { ALGORITHM_NAMES } from '../../token/algorithms.ts'
import { isSafeKeyUrl } from '../../token/remote-keys.ts'
import { ID, type JsonSchema, object, SECRET, text } from '../http/schemas.ts'
import { RequestProblem } from '../problems/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, EMPTY, ok, put } from './route.ts'

type HookBody = { readonly url: string; readonly secret: string }

const URL_TEXT = { type: 'string', maxLength: 2_048 }
const HOOK_BODY = object(
  {
    url: { ...URL_TEXT, description: 'https, or http for a loopback host. Redirects are not followed.' },
    secret: {
      ...SECRET,
      description: 'Key of the HMAC-SHA-256 in Portcullis-Signature. Stored encrypted and never returned.',
    },
  },
  ['url', 'secret'],
)
const CLAIM = text('^[\\x21-\\x7e]{1,128}$', '1 to 128 visible ASCII characters')
const ISSUER_PARTS: { readonly [name: string]: JsonSchema } = {
  jwks: object({ keys: { type: 'array', minItems: 1, maxItems: 64, items: { type: 'object' } } }, ['keys']),
  jwks_uri: URL_TEXT,
  algorithms: {
    type: 'array',
    minItems: 1,
    maxItems: ALGORITHM_NAMES.length,
    uniqueItems: true,
    items: { type: 'string', enum: ALGORITHM_NAMES },
  },
  audience: { ...URL_TEXT, minLength: 1, description: 'An accepted token must name this audience.' },
  claims: object({ subject: CLAIM, organization: CLAIM }),
  subject_prefix: {
    ...text('^[\\x21\\x22\\x24-\\x7e]{1,64}$', '1 to 64 visible ASCII characters without #'),
    description:
      'A subject of this issuer becomes `user:~<prefix><sub>`: with `partner:`, `user:~partner:<sub>`. Our own ids never begin with `~`. A prefix must not begin with the prefix of another issuer.',
  },
  organizations: { type: 'array', minItems: 1, maxItems: 1_000, uniqueItems: true, items: ID },
}
const ISSUER_BODY = object(ISSUER_PARTS, ['algorithms', 'audience', 'subject_prefix', 'organizations'])
const ISSUER = object({ issuer: ID, ...ISSUER_PARTS }, ['issuer', 'algorithms', 'audience', 'subject_prefix'])

export function addHooks(app: FastifyInstance, deps: ManagementDeps): void {
  const common = {
    tag: 'Hooks',
    scope: 'hooks:write',
    organizationScope: 'environment',
    path: '/v1/token-hook',
  } as const
  addManagementRoute<{ params: never; body: HookBody }>(app, deps, {
    ...common,
    method: 'PUT',
    operation: 'putTokenHook',
    summary: 'Sets or replaces the service that may add claims to tokens.',
    body: HOOK_BODY,
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at }) => at.hook.read(),
    async handle({ at, body, context }) {
      if (!isHookUrl(body.url)) {
        const message = 'must use https, unless its host is a loopback address, and hold no password'
        throw new RequestProblem('request_invalid', `url ${message}`, { issues: [{ place: '/url', message }] })
      }
      await at.hook.configure(body, context)
      return EMPTY
    },
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'DELETE',
    operation: 'deleteTokenHook',
    summary: 'Removes the token hook: no service adds claims any more.',
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at }) => at.hook.read(),
    async handle({ at, context }) {
      await at.hook.configure(null, context)
      return EMPTY
    },
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'GET',
    operation: 'getTokenHook',
    summary: 'The service that may add claims to tokens, without its secret.',
    answer: object({ url: URL_TEXT }, ['url']),
    state: ({ at }) => at.hook.read(),
    async handle({ at }) {
      const hook = await at.hook.read()
      if (hook === null) throw new RequestProblem('not_found', 'there is no token hook')
      return ok({ url: hook.url })
    },
  })
  addIssuers(app, deps)
}

function addIssuers(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Issuers', scope: 'issuers:write', organizationScope: 'environment' } as const
  const path = '/v1/trusted-issuers/:issuer'
  addManagementRoute<{ params: 'issuer'; body: TrustedIssuerDocument }>(app, deps, {
    ...common,
    method: 'PUT',
    path,
    operation: 'putTrustedIssuer',
    summary: 'Accepts access tokens of another issuer for decisions in the given organizations.',
    body: ISSUER_BODY,
    answer: ISSUER,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => issuerOf(at, params.issuer),
    async handle({ at, params, body, context }) {
      const message = issuerIssue(body)
      if (message !== null) {
        throw new RequestProblem('request_invalid', message, { issues: [{ place: '/jwks_uri', message }] })
      }
      return put(await at.issuers.put(params.issuer, body, context), { issuer: params.issuer, ...body })
    },
  })
  addManagementRoute<{ params: 'issuer' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path,
    operation: 'deleteTrustedIssuer',
    summary: "Refuses the issuer's tokens from the next decision on.",
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => issuerOf(at, params.issuer),
    async handle({ at, params, context }) {
      if (!(await at.issuers.remove(params.issuer, context))) {
        throw new RequestProblem('not_found', `there is no trusted issuer ${params.issuer}`)
      }
      return EMPTY
    },
  })
  addManagementRoute<{ params: 'issuer' }>(app, deps, {
    ...common,
    method: 'GET',
    path,
    operation: 'getTrustedIssuer',
    summary: 'One trusted issuer.',
    answer: ISSUER,
    state: ({ at, params }) => issuerOf(at, params.issuer),
    async handle({ at, params }) {
      const issuer = await issuerOf(at, params.issuer)
      if (issuer === null) throw new RequestProblem('not_found', `there is no trusted issuer ${params.issuer}`)
      return ok(issuer)
    },
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/trusted-issuers',
    operation: 'listTrustedIssuers',
    summary: 'All trusted issuers.',
    answer: object({ items: { type: 'array', items: ISSUER } }, ['items']),
    handle: async () => ok({ items: await deps.issuers.list() }),
  })
}

async function issuerOf({ issuers }: ManagementDeps, issuer: string): Promise<object | null> {
  return (await issuers.list()).find((known) => known.issuer === issuer) ?? null
}

function isHookUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(urlHost(url)))
}

function issuerIssue({ jwks, jwks_uri: uri }: TrustedIssuerDocument): string | null {
  if ((jwks === undefined) === (uri === undefined)) return 'exactly one of jwks and jwks_uri is needed'
  return uri === undefined || isSafeKeyUrl(uri)
    ? null
    : 'jwks_uri must use https, unless its host is a loopback address'
}
