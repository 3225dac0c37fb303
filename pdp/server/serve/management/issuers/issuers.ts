/** The external issuers that the environment trusts. */
import type { FastifyInstance } from 'fastify'
import type { TrustedIssuerDocument } from '../../../../identity/issuer/tokens/external-issuers.ts'
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import { pointer } from '../../../../shared/domain/json.ts'
import { quote } from '../../../../shared/domain/names.ts'
import { ALGORITHM_NAMES } from '../../../../shared/token/algorithms.ts'
import { isSafeKeyUrl } from '../../../../shared/token/remote-keys.ts'
import { ID, type JsonSchema, object, SECRET, text, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, put } from '../route.ts'
import { SIGNALS, STREAM_STATE, signalsIssues } from './signals.ts'

const URL_TEXT = { type: 'string', maxLength: 2_048 }
const CLAIM = text('^[\\x21-\\x7e]{1,128}$', '1 to 128 visible ASCII characters')
const NAMED_TEXTS: JsonSchema = {
  type: 'object',
  minProperties: 1,
  maxProperties: 1_000,
  additionalProperties: { type: 'string', minLength: 1, maxLength: 256 },
}
const ISSUER_PARTS: { readonly [name: string]: JsonSchema } = {
  jwks: whole({ keys: { type: 'array', minItems: 1, maxItems: 64, items: { type: 'object' } } }),
  jwks_uri: URL_TEXT,
  introspection: {
    ...object(
      {
        endpoint: URL_TEXT,
        client_id: text('^[\\x20-\\x7e]{1,256}$', '1 to 256 ASCII characters'),
        client_secret: SECRET,
      },
      ['endpoint', 'client_id'],
    ),
    description:
      'Asks the issuer about its tokens (RFC 7662), which may be opaque, instead of verifying them by keys; at most one issuer has it. An answer counts for 10 seconds. `client_secret` is required, stored encrypted and never shown.',
  },
  algorithms: {
    type: 'array',
    minItems: 1,
    maxItems: ALGORITHM_NAMES.length,
    uniqueItems: true,
    items: { type: 'string', enum: ALGORITHM_NAMES },
  },
  audience: {
    oneOf: [
      { ...URL_TEXT, minLength: 1 },
      { type: 'array', minItems: 1, maxItems: 8, uniqueItems: true, items: { ...URL_TEXT, minLength: 1 } },
    ],
    description: 'An accepted token must name this audience, or one of these.',
  },
  resource: {
    ...URL_TEXT,
    minLength: 1,
    description:
      'The audience of our app that tokens with `audience` are for. Default: `audience` itself, the first of several.',
  },
  typ: {
    type: 'string',
    enum: ['at+jwt', 'JWT'],
    description:
      '`JWT` also accepts access tokens whose header has `typ` `JWT`, or none. ID tokens are refused. Default: `at+jwt`.',
  },
  workloads: {
    type: 'boolean',
    description:
      'Every token of this issuer for this audience is a credential, also without `scope`: of ServiceAccounts, SPIFFE and CI systems. The audience must not be a client at which people sign in.',
  },
  claims: {
    ...object({ audience: CLAIM, subject: CLAIM, client: CLAIM, organization: CLAIM, groups: CLAIM, roles: CLAIM }),
    description:
      'Names of claims; a dot leads into an object (`realm_access.roles`). Defaults: `aud`, `sub` and `client_id`. A subject is a member of `group:~<subject_prefix>group:<name>` and `group:~<subject_prefix>role:<name>` for each name in `groups` and `roles`, as long as the token lives.',
  },
  required_claims: {
    ...NAMED_TEXTS,
    description: 'Values that claims of every token must have, or contain.',
  },
  organization_values: {
    ...NAMED_TEXTS,
    description: 'The organization by the value of its claim. Without it, the claim names our organization itself.',
  },
  subject_prefix: {
    ...text('^[\\x21\\x22\\x24-\\x7e]{1,64}$', '1 to 64 visible ASCII characters without #'),
    description:
      'A subject of this issuer becomes `user:~<prefix><sub>`: with `partner:`, `user:~partner:<sub>`. Our own ids never begin with `~`. A prefix must not begin with the prefix of another issuer.',
  },
  renamed_from: {
    ...URL_TEXT,
    minLength: 1,
    description:
      'The former name of this issuer, for the days in which tokens of both names are in use: another trusted issuer with the same `subject_prefix`, whose subjects are the same people.',
  },
  ssf: SIGNALS,
  organizations: { type: 'array', minItems: 1, maxItems: 1_000, uniqueItems: true, items: ID },
}
const ISSUER_BODY = object(ISSUER_PARTS, ['audience', 'subject_prefix', 'organizations'])
const ISSUER = object({ issuer: ID, ...ISSUER_PARTS }, ['issuer', 'audience', 'subject_prefix'])

const COMMON = { tag: 'Issuers', scope: 'issuers:write', organizationScope: 'environment' } as const
const PATH = '/v1/trusted-issuers/:issuer'

export function addIssuers(app: FastifyInstance, deps: ManagementDeps): void {
  addWrites(app, deps)
  addReads(app, deps)
}

function addWrites(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{ params: 'issuer'; body: TrustedIssuerDocument; stored: object }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putTrustedIssuer',
    summary: 'Accepts access tokens of another issuer for decisions in the given organizations.',
    body: ISSUER_BODY,
    answer: ISSUER,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => issuerOf(at, params.issuer),
    async handle({ at, params, body, context }) {
      const issues = issuerIssues(body)
      if (issues.length > 0)
        throw new RequestProblem('request_invalid', issues.map(({ message }) => message).join('; '), { issues })
      const existed = await at.issuers.put(params.issuer, body, context)
      return put(existed, (await issuerOf(at, params.issuer)) ?? {})
    },
  }
  addPutAndPatch(app, deps, route, {
    summary: 'Changes a trusted issuer; one that is asked about its tokens needs `introspection.client_secret` again.',
  })
  addManagementRoute<{ params: 'issuer' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteTrustedIssuer',
    summary: "Refuses the issuer's tokens from the next decision on.",
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => issuerOf(at, params.issuer),
    handle: async ({ at, params: { issuer }, context }) =>
      done(await at.issuers.remove(issuer, context), `there is no trusted issuer ${issuer}`),
  })
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'issuer'; stored: object }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getTrustedIssuer',
    summary: 'One trusted issuer.',
    answer: ISSUER,
    state: ({ at, params }) => issuerOf(at, params.issuer),
    handle: async ({ params: { issuer }, stored }) => ok(found(stored, `there is no trusted issuer ${issuer}`)),
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/trusted-issuers',
    operation: 'listTrustedIssuers',
    summary: 'All trusted issuers.',
    answer: whole({ items: { type: 'array', items: ISSUER } }),
    handle: async () => ok({ items: await deps.issuers.list() }),
  })
  addManagementRoute<{ params: 'issuer' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: `${PATH}/signals`,
    operation: 'getTrustedIssuerSignals',
    summary: 'The state of the stream of security events that an issuer sends us.',
    answer: STREAM_STATE,
    async handle({ at, params }) {
      const state = (await at.issuers.streams()).find(({ issuer }) => issuer === params.issuer)
      return ok(found(state, `no stream is received from ${params.issuer}: its entry has no ssf, or is new`))
    },
  })
}

async function issuerOf({ issuers }: ManagementDeps, issuer: string): Promise<object | null> {
  return (await issuers.list()).find((known) => known.issuer === issuer) ?? null
}

function issuerIssues(document: TrustedIssuerDocument): readonly ValidationIssue[] {
  const { jwks, jwks_uri: uri, introspection, organizations, organization_values: values = {}, claims } = document
  const issues: ValidationIssue[] = []
  if ([jwks, uri, introspection].filter((by) => by !== undefined).length !== 1)
    issues.push({ place: '/jwks_uri', message: 'exactly one of jwks, jwks_uri and introspection is needed' })
  if (introspection === undefined && document.algorithms === undefined)
    issues.push({ place: '/algorithms', message: 'algorithms is needed with keys' })
  if (introspection !== undefined && introspection.client_secret === undefined)
    issues.push({ place: '/introspection/client_secret', message: 'introspection needs client_secret' })
  if (introspection !== undefined && !isSafeKeyUrl(introspection.endpoint)) {
    const message = 'endpoint must use https, unless its host is a loopback address'
    issues.push({ place: '/introspection/endpoint', message })
  }
  if (uri !== undefined && !isSafeKeyUrl(uri))
    issues.push({ place: '/jwks_uri', message: 'jwks_uri must use https, unless its host is a loopback address' })
  if (document.organization_values !== undefined && claims?.organization === undefined)
    issues.push({ place: '/organization_values', message: 'organization_values needs claims.organization' })
  if (document.ssf !== undefined) issues.push(...signalsIssues(document.ssf))
  for (const [value, organization] of Object.entries(values)) {
    if (organizations.includes(organization)) continue
    const message = `${quote(organization)} is not one of organizations`
    issues.push({ place: pointer('/organization_values', value), message })
  }
  return issues
}
