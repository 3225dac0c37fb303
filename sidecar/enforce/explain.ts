/** Explains what a route file does with a request, without the network: the route, its parameters and the questions. */

import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { type AccessClaims, parseClaims } from '../../pdp/shared/token/claims.ts'
import { TokenError } from '../../pdp/shared/token/errors.ts'
import { itemFilter } from '../answers/item-filter.ts'
import { type ClientRequest, syntheticRequest } from '../http/client-request.ts'
import { demandsOfMcp } from '../mcp/demands.ts'
import { RequestError } from '../request/errors.ts'
import { type InboundRequest, readInbound } from '../request/inbound.ts'
import { DEFAULT_LIMITS, targetCharsMax } from '../route-file/default-limits.ts'
import type { RouteFile } from '../route-file/route-file.ts'
import type { AnswerRule } from '../routes/answer-rule.ts'
import {
  buildItemQuestions,
  buildQuestions,
  type Check,
  denialText,
  describeQuestions,
  NOBODY,
  requiredScopes,
  usesBody,
} from '../routes/checks.ts'
import { checkMedia, readJson } from '../routes/json-body.ts'
import type { McpRules } from '../routes/mcp-rules.ts'
import { parameterNames } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import { createRouting, type RequestMatch, routeRequest } from '../routes/route-request.ts'
import { requestValues, type ValueOptions } from '../routes/values.ts'
import { denialStatus } from './denial-response.ts'
import { NOTHING_ASKED as NOTHING_SAID } from './stages.ts'

export type ExplainedRequest = {
  readonly method: string
  /** A path, or a URL with host. */
  readonly target: string
  /** Claims of the token; null: the request has no token. */
  readonly as: { readonly [claim: string]: unknown } | null
  /** The address of the client; null or absent: unknown. */
  readonly from?: string | null
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string | null
}
export type Explanation = {
  readonly route: Route | null
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** The questions to the PDP as a route file writes them; empty for a public route and for a denial. */
  readonly asks: readonly string[]
  /** Values for parameters of conditions; the questions carry them to the PDP. */
  readonly context: { readonly [parameter: string]: unknown }
  /** True: the request has no token, and the route lets guests ask. */
  readonly isGuest: boolean
  /** Edits the service's answer as if the PDP had allowed exactly the questions in `allowed`. Null: the answer passes unchanged. */
  readonly edit: ((answer: string, allowed: readonly string[]) => Promise<string>) | null
  /** The denial; null: the request is allowed, or the PDP's answers decide. */
  readonly denial: { readonly code: ProblemCode; readonly status: number; readonly detail: string } | null
}

export type Explainer = (request: ExplainedRequest) => Explanation

/** `routing`: the routing of the file, for a caller that has made it already. */
export function createExplainer(file: RouteFile, routing = createRouting(file)): Explainer {
  const targetMax = targetCharsMax({ ...DEFAULT_LIMITS, ...file.limits })
  return (request) => {
    const found: { route: Route | null; parameters: Explanation['parameters'] } = { route: null, parameters: [] }
    try {
      const { headers = [], body = null, from } = request
      const client = toClientRequest({ ...request, headers, body }, file.hosts)
      const origin = { address: from ?? '', host: null, fault: null }
      const inbound = readInbound(client, { origin, targetCharsMax: targetMax })
      const match = routeRequest(routing, inbound)
      if (match.kind !== 'route') throw unrouted(match)
      const names = [...parameterNames(match.route.pattern), match.route.hostParameter]
      found.route = match.route
      found.parameters = match.parameters.map((value, at) => [names[at] ?? '', value] as const)
      const isGuest = request.as === null && match.route.guests !== null
      return { ...found, ...asksOf(request, { inbound, match }), isGuest, denial: null }
    } catch (err) {
      return { ...found, ...NOTHING_ASKED, isGuest: false, denial: denialOf(err) }
    }
  }
}

type MatchedRequest = {
  readonly inbound: InboundRequest
  readonly match: Extract<RequestMatch, { readonly kind: 'route' }>
}

function asksOf(
  { as, body }: ExplainedRequest,
  { inbound, match }: MatchedRequest,
): Pick<Explanation, 'asks' | 'context' | 'edit'> {
  const { check, context, guests } = match.route
  const asking = check === null ? null : { check, context }
  if (asking !== null && as === null && guests === null)
    throw new TokenError('token_missing', 'this route needs an access token')
  const { mcp: rules } = match.route
  const text = rules === null ? bodyText(body ?? '', { inbound, match }) : (body ?? null)
  if (asking === null) return NOTHING_ASKED
  const claims = as === null ? null : sampleClaims(as)
  const demands = rules === null || claims === null ? null : explainMcp(asking.check, rules, { inbound, claims, text })
  const { parameters } = match
  const questions = buildQuestions(
    { ...asking, check: demands?.check ?? asking.check },
    requestValues({ request: inbound, parameters, keepQuery: match.route.query, claims, body: text }),
    demands?.parts,
  )
  const refusal = claims === null && questions.permissions.length === 0 ? questions.evaluate(NOTHING_SAID) : null
  if (refusal !== null) throw new TokenError('token_missing', `for a guest: ${denialText(refusal)}`)
  const scopes = (demands?.list ?? []).flatMap(requiredScopes).map((name) => `scope ${name}`)
  const denial = demands?.unnamed === true ? new RequestError('permission_denied', UNNAMED) : null
  if (denial !== null) throw denial
  const of = { request: inbound, parameters, keepQuery: match.route.query, claims, body: null }
  return {
    edit: match.route.answer === null ? null : exampleOf(match.route.answer, context, of),
    asks: [...new Set([...scopes, ...describeQuestions(questions)])],
    context: questions.context === '' ? {} : JSON.parse(questions.context),
  }
}

const UNNAMED = 'the route does not name this tool, prompt or resource, so everybody is denied'

function explainMcp(
  base: Check,
  rules: McpRules,
  {
    inbound,
    claims,
    text,
  }: { readonly inbound: InboundRequest; readonly claims: AccessClaims; readonly text: string | null },
) {
  if (inbound.method === 'POST') checkMedia(inbound, 'value')
  const body = inbound.method === 'POST' ? Buffer.from(text ?? '') : null
  const demands = demandsOfMcp({ request: inbound, rules, base, owner: claims, sessions: null, body })
  return {
    ...demands,
    list: demands.check === base ? demands.parts : [],
    unnamed: demands.check !== base && demands.parts[1] === NOBODY,
  }
}

/** The body as the sidecar reads it; null: no check reads the body. Throws RequestError. */
function bodyText(body: string, { inbound, match }: MatchedRequest): string | null {
  const { check, context } = match.route
  const isRead = check !== null && usesBody({ check, context })
  if (body === '' || (!isRead && match.judgeJson === null)) return null
  checkMedia(inbound, isRead ? 'value' : 'absence')
  const text = readJson(Buffer.from(body))
  match.judgeJson?.(text)
  return text
}

function exampleOf(rule: AnswerRule, context: Route['context'], of: ValueOptions): NonNullable<Explanation['edit']> {
  const holds = (item: string, allowed: readonly string[]): boolean => {
    const { permissions, parts } = buildItemQuestions({ check: rule.keep, context }, [requestValues({ ...of, item })])
    const outcomes = permissions.map(({ relation, resource }) =>
      allowed.includes(`${relation} ${resource}`) ? ('allowed' as const) : ('denied' as const),
    )
    const entitlements = new Map(allowed.map((text) => [text.replace(/^entitlement /, ''), true] as const))
    return parts[0]?.({ ...NOTHING_SAID, permissions: outcomes, entitlements }) === null
  }
  return async (answer, allowed) => {
    const filter = itemFilter(rule, async (items) => items.map((item) => holds(item, allowed)), {
      bytesMax: 0,
      shadow: false,
      count: { kept: 0, removed: 0 },
    })
    if (rule.each.kind !== 'lines') return (await filter.edit(answer)) ?? ''
    const lines = answer.split(/(?<=\n)/)
    const kept = (await filter.keepLines?.(lines)) ?? []
    return lines.filter((_, at) => kept[at] === true).join('')
  }
}

const NOTHING_ASKED: ReturnType<typeof asksOf> = { asks: [], context: {}, edit: null }

/** Adds the claims that every token has, so that the caller gives only those that matter. */
function sampleClaims(as: { readonly [claim: string]: unknown }) {
  const payload = Object.assign(Object.create(null), { iss: 'https://issuer.invalid', aud: 'any', sub: 'somebody' })
  return parseClaims(Object.assign(payload, { client_id: 'client', jti: 'any', iat: 0, exp: 0 }, as), '')
}

function unrouted(match: Exclude<RequestMatch, { kind: 'route' }>): RequestError {
  if (match.kind === 'method')
    return new RequestError('method_unsupported', `the path has routes for ${match.allow.join(', ')}`)
  return new RequestError('route_unknown', 'no route has this path')
}

function denialOf(err: unknown): Explanation['denial'] {
  if (err instanceof RequestError) return { code: err.code, status: denialStatus(err.code), detail: err.reason }
  if (!(err instanceof TokenError)) throw err
  const code = err.code === 'token_missing' ? 'token_missing' : 'token_invalid'
  return { code, status: denialStatus(code), detail: err.message }
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)/i

/** Adds the fields that every client sends: Host (the first of `hosts`, unless the target names one), and those of a JSON body. */
export function toClientRequest(
  options: {
    readonly method: string
    /** A path, or a URL with host. */
    readonly target: string
    readonly headers: readonly (readonly [name: string, value: string])[]
    readonly body: string | null
  },
  hosts: readonly string[],
): ClientRequest {
  const { method, target, headers, body } = options
  const usual = [['Host', ABSOLUTE.exec(target)?.[1] ?? hosts[0]?.replace('*', 'any') ?? '']]
  if (body !== null)
    usual.push(['Content-Length', String(Buffer.byteLength(body))], ['Content-Type', 'application/json'])
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const missing = usual.filter(([name = '']) => !given.has(name.toLowerCase()))
  return syntheticRequest({ method, target, raw: [...missing, ...headers].flat() })
}
