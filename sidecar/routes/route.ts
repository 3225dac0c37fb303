/** The types of routes and of their matches. */
import type { Network } from '../../pdp/shared/base/addresses.ts'
import type { Cors } from '../http/cors.ts'
import type { UpstreamEntry } from '../http/upstream-entry.ts'
import type { TokenFrom } from '../request/browser-token.ts'
import type { RequestTarget } from '../request/target.ts'
import type { AnswerRule } from './answer-rule.ts'
import type { Check } from './checks.ts'
import type { RouteContext } from './context.ts'
import type { McpRules } from './mcp-rules.ts'
import { isWithin, type Pattern } from './patterns.ts'
import type { StepUp } from './step-up.ts'

export type Route = RouteOptions & {
  /** As written in the file, such as `GET /invoices/{id}`: names the route in logs and metrics. */
  readonly id: string
  /** Lower case, perhaps with `*` in place of the first label; null: every served host that has no routes of its own. */
  readonly host: string | null
  /** The name of the first label of the host, which is the last of the parameters; null: it is no value. */
  readonly hostParameter: string | null
  /** `*`: every method. */
  readonly method: string
  readonly pattern: Pattern
  /** Null: public. */
  readonly check: Check | null
  /** Public, and the service learns who sends a valid token or has a session. */
  readonly withIdentity: boolean
  /** The rules of a route of the kind MCP, which is one route for each of its methods; null: it is of another kind. */
  readonly mcp: McpRules | null
}

/** The organization that they are asked about in; null: no check of the route needs one. */
export type Guests = { readonly organization: string | null }

/** A path that is open to some peers under every host. `route` is public, and its pattern is that path. */
export type OpenPath = { readonly path: string; readonly peers: readonly Network[]; readonly route: Route }

/** `parameters`: by position in the pattern, then the label of the host where the route names it. */
export type MatchedRoute = { readonly route: Route; readonly parameters: readonly string[] }
export type Match =
  /** `alike`: further routes that match and are as specific. They protect the request in the same way. */
  | (MatchedRoute & { readonly kind: 'route'; readonly alike: readonly MatchedRoute[] })
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  /** Some servers would read the path as one of the route `other`, which has other rules than `route`. */
  | { readonly kind: 'ambiguous'; readonly route: Route; readonly other: Route }
  /** These match, none is the most specific, and they protect the request in different ways, or some lack the method. */
  | { readonly kind: 'overlap'; readonly routes: readonly Route[] }
  | { readonly kind: 'none' }

/** The path of a request. `segments` are decoded; a segment that `written` keeps encoded matches no literal. */
export type PathSegments = Pick<RequestTarget, 'segments' | 'written'>
export type RouteTable = {
  match(request: { readonly host: string; readonly method: string; readonly path: PathSegments }): Match
  /** A route that is not public, has other rules than `route`, and whose paths may begin with these folded names; null: none. */
  guarded(request: { readonly host: string; readonly route: Route; readonly names: readonly string[] }): Route | null
  /** Hosts that have routes of their own. */
  readonly hosts: ReadonlySet<string>
}

/** True if both say what happens to the same requests. */
export const isSameRoute = (
  a: Pick<Route, 'host' | 'method' | 'pattern'>,
  b: Pick<Route, 'host' | 'method' | 'pattern'>,
): boolean =>
  a.host === b.host && a.method === b.method && isWithin(a.pattern, b.pattern) && isWithin(b.pattern, a.pattern)

export type RouteOptions = {
  /** `%2f` may be in the path. */
  readonly encodedSlash: boolean
  /** `;` may be in the path. */
  readonly semicolon: boolean
  /** The query may have a key with the name of a checked parameter of the path and another value, or one that names a function. */
  readonly query: boolean
  /**
   * `keep`: the body may have what a service could take for a judged value, or for the method. `judge`: it is read also where
   * only a parameter of the path could be found there again.
   */
  readonly body: 'keep' | 'judge' | null
  /** The bound of a body that is read; null: as the file says. */
  readonly bodyBytesMax: number | null
  readonly forwardToken: boolean
  /** Shadow mode: denials with 401, 403 or 503 are only logged and counted. */
  readonly shadow: boolean
  /** WebSocket connections may be opened. */
  readonly websocket: boolean
  /** Origins whose pages may open one. A client without an Origin field is not a browser. */
  readonly origins: ReadonlySet<string>
  /** Where pages that cannot set Authorization have their token; null: nowhere. */
  readonly tokenFrom: TokenFrom | null
  /** Null: no page of another origin reads answers. */
  readonly cors: Cors | null
  readonly stepUp: StepUp | null
  /** The only issuers, of those of the file, whose tokens count; null: all. */
  readonly issuers: readonly string[] | null
  /** A token must be for one of these as well; null: what the file says is enough. */
  readonly audience: readonly string[] | null
  /** The service behind; null: that of the file. */
  readonly upstream: UpstreamEntry | null
  /** The beginning of its paths that the service does not get; null: it gets whole paths. */
  readonly stripPath: string | null
  /** The path of the service's own below which it gets them; null: its root. */
  readonly addPath: string | null
  /** The longest silence of the service before its answer, in milliseconds; null: as the file says. */
  readonly upstreamHeadersMs: number | null
  /** Browsers are sent to sign in, where the file says how. */
  readonly signIn: boolean
  /** Requests without a token are decided as those of guests; null: they are refused. */
  readonly guests: Guests | null
  /** Which items of its answers a reader sees; null: answers pass as they are. */
  readonly answer: AnswerRule | null
  /** The context of its check's questions. */
  readonly context: RouteContext
}
