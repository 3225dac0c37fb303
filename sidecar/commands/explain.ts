/** Says what a route file makes of a request, without any network: the route, its parameters and the questions. */
import type { ProblemCode } from '../../pdp/process/problems.ts'
import { parseClaims } from '../../pdp/token/claims.ts'
import { TokenError } from '../../pdp/token/errors.ts'
import { denialStatus } from '../enforce/denial-response.ts'
import { foldName } from '../http/folding.ts'
import { RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { parseAuthority, parseTarget } from '../request/target.ts'
import type { RouteFile } from '../route-file/route-file.ts'
import { buildQuestions, describeQuestions, usesBody } from '../routes/checks.ts'
import { matchRequest } from '../routes/match.ts'
import { parameterNames } from '../routes/patterns.ts'
import type { Match, Route, RouteTable } from '../routes/route.ts'
import { createRouteTable } from '../routes/route-table.ts'
import { requestValues } from '../routes/values.ts'

export type ExplainedRequest = {
  readonly method: string
  /** Path, or URL with host. */
  readonly target: string
  /** Claims of the token; null: none is sent. */
  readonly as: { readonly [claim: string]: string } | null
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string
}
export type Explanation = {
  readonly route: Route | null
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** As written in checks; empty for a public route and for a refusal. */
  readonly asks: readonly string[]
  /** Null: it depends on the answers alone. */
  readonly refusal: { readonly code: ProblemCode; readonly status: number; readonly detail: string } | null
}

export type Explainer = (request: ExplainedRequest) => Explanation

export function createExplainer(file: RouteFile): Explainer {
  const table = createRouteTable(file.routes)
  return (request) => {
    const found: { route: Route | null; parameters: Explanation['parameters'] } = { route: null, parameters: [] }
    try {
      const inbound = toInbound(request, file)
      const match = matchServed(inbound, { file, table })
      if (match.kind !== 'route') throw unmatched(match)
      const names = parameterNames(match.route.pattern)
      found.route = match.route
      found.parameters = match.parameters.map((value, at) => [names[at] ?? '', value] as const)
      return { ...found, asks: asksOf(request, { inbound, match }), refusal: null }
    } catch (err) {
      return { ...found, asks: [], refusal: refusalOf(err) }
    }
  }
}

function asksOf(
  { as, body }: ExplainedRequest,
  { inbound, match }: { inbound: InboundRequest; match: Extract<Match, { kind: 'route' }> },
): readonly string[] {
  const { check } = match.route
  if (check === null) return []
  if (as === null) throw new TokenError('token_missing', 'this route needs an access token')
  const bytes = usesBody(check) ? Buffer.from(body ?? '') : null
  const claims = sampleClaims(as)
  return describeQuestions(
    buildQuestions(check, requestValues({ request: inbound, parameters: match.parameters, claims, body: bytes })),
  )
}

/** What a token has anyway, so that only the claims that matter need to be said. */
function sampleClaims(as: { readonly [claim: string]: string }) {
  const payload = Object.assign(Object.create(null), { iss: 'https://issuer.invalid', aud: 'any', sub: 'somebody' })
  return parseClaims(Object.assign(payload, { client_id: 'client', jti: 'any', iat: 0, exp: 0 }, as), '')
}

function toInbound({ method, target: text, headers = [] }: ExplainedRequest, file: RouteFile): InboundRequest {
  const target = parseTarget(text)
  const hostField = target.authority ?? file.hosts[0] ?? ''
  return {
    version: '1.1',
    method,
    target,
    hostField,
    host: parseAuthority(hostField),
    raw: headers.flat(),
    names: headers.map(([name]) => foldName(name)),
    connectionListed: new Set(),
    authorization: [],
    proofs: [],
    bodyBytes: 0,
  }
}

function matchServed(request: InboundRequest, { file, table }: { file: RouteFile; table: RouteTable }): Match {
  const { hostname } = request.host
  if (!file.hosts.includes(hostname) && !table.hosts.has(hostname))
    throw new RequestError('host_unknown', `${hostname} is not served`)
  return matchRequest(table, request)
}

function unmatched(match: Exclude<Match, { kind: 'route' }>): RequestError {
  if (match.kind === 'method')
    return new RequestError('method_unsupported', `the path has routes for ${match.allow.join(', ')}`)
  return new RequestError('route_unknown', 'no route has this path')
}

function refusalOf(err: unknown): Explanation['refusal'] {
  if (err instanceof RequestError) return { code: err.code, status: denialStatus(err.code), detail: err.reason }
  if (!(err instanceof TokenError)) throw err
  const code = err.code === 'token_missing' ? 'token_missing' : 'token_invalid'
  return { code, status: denialStatus(code), detail: err.message }
}
