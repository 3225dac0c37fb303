/** The identity service's routes. URLs in answers come from the issuer, never from the request. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PROBLEM_MEDIA_TYPE, type ProblemCode, problem } from '../shared/base/problems.ts'
import { onceLate } from '../shared/base/with-timeout.ts'
import { PdpError } from '../shared/domain/errors.ts'
import { isRequestId } from '../shared/domain/names.ts'
import { errorPage } from './html/error-page.ts'
import { goByGet, repeatedByGet } from './html/repeated-by-get.ts'
import type { TokenEndpoints } from './issuer/tokens/token-endpoints.ts'
import { answerUserinfo, type UserinfoDeps } from './issuer/tokens/userinfo.ts'
import { mountOf, PATHS } from './oauth/paths.ts'
import { answerResourceMetadata } from './oauth/resource-metadata.ts'
import { STATUS } from './oauth/status.ts'
import { ACCOUNT_PATHS, type Account } from './people/account/account.ts'
import { type ApprovalDeps, answerApproval } from './people/sign-in/approval.ts'
import { answerInteraction, type InteractionDeps } from './people/sign-in/interaction.ts'
import type { SignedOutElsewhere } from './people/upstream-providers/signed-out.ts'
import { DATABASE_AWAY, UNAVAILABLE } from './provider/error-responses.ts'

type Kind = 'api' | 'token' | 'signed-out' | 'page' | 'interaction' | 'approval' | 'userinfo' | 'resource' | 'account'
type Route = { readonly kind: Kind; readonly methods: readonly string[] }
const READ = ['GET', 'HEAD', 'OPTIONS']
const CALL = ['POST', 'OPTIONS']
const SHOW = ['GET', 'HEAD']
const FORM = [...SHOW, 'POST']

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  [PATHS.authorize, { kind: 'page', methods: FORM }],
  [PATHS.device, { kind: 'page', methods: FORM }],
  [PATHS.approve, { kind: 'approval', methods: FORM }],
  [PATHS.logout, { kind: 'page', methods: FORM }],
  [PATHS.logoutConfirm, { kind: 'page', methods: FORM }],
  [PATHS.logoutSuccess, { kind: 'page', methods: SHOW }],
  [PATHS.pushed, { kind: 'api', methods: CALL }],
  [PATHS.token, { kind: 'api', methods: CALL }],
  [PATHS.deviceAuthorization, { kind: 'api', methods: CALL }],
  [PATHS.backchannel, { kind: 'api', methods: ['POST'] }],
  [PATHS.introspect, { kind: 'token', methods: CALL }],
  [PATHS.revoke, { kind: 'token', methods: CALL }],
  [PATHS.userinfo, { kind: 'userinfo', methods: ['GET', 'POST', 'OPTIONS'] }],
  [PATHS.jwks, { kind: 'api', methods: READ }],
  [PATHS.openidConfiguration, { kind: 'api', methods: READ }],
  [PATHS.serverMetadata, { kind: 'api', methods: READ }],
  [PATHS.resourceMetadata, { kind: 'resource', methods: SHOW }],
  ...[...ACCOUNT_PATHS, PATHS.accountInvitation, PATHS.accountProviders, PATHS.accountProof].map(
    (path) => [path, { kind: 'account', methods: FORM }] as const,
  ),
])
const UNDER: readonly (readonly [string, Route])[] = [
  [`${PATHS.authorize}/`, { kind: 'page', methods: SHOW }],
  [`${PATHS.device}/`, { kind: 'page', methods: SHOW }],
  [`${PATHS.accountProviders}/`, { kind: 'account', methods: SHOW }],
  [`${PATHS.signedOutElsewhere}/`, { kind: 'signed-out', methods: ['POST'] }],
  [`${PATHS.interaction}/`, { kind: 'interaction', methods: FORM }],
]
// RFC 8414 section 3.1 and RFC 9728 section 3.1 put the well-known part before the issuer's own path.
const INSERTED: readonly string[] = [PATHS.serverMetadata, PATHS.resourceMetadata]
const UID = /^[\w-]{1,128}$/
// Fields in which proxies and clients report the requested URL. They are removed, because the issuer is known.
const IGNORED_HEADERS = ['forwarded', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-for', 'x-forwarded-proto']

export type HandlerDeps = InteractionDeps &
  ApprovalDeps &
  UserinfoDeps & {
    readonly tokenEndpoints: Pick<TokenEndpoints, 'translate'>
    readonly account: Pick<Account, 'answer'>
    readonly signedOutElsewhere: SignedOutElsewhere
    /** oidc-provider's own answers, for the current signing keys. */
    readonly callback: (req: IncomingMessage, res: ServerResponse) => Promise<void>
  }

/**
 * Answers requests for our routes and returns true; false: it is not for us and untouched. Never rejects. `deadlineMs`: the time for the
 * answer, from the request's complete arrival.
 */
export function createHandler(
  deps: HandlerDeps,
): (req: IncomingMessage, res: ServerResponse, deadlineMs?: number) => Promise<boolean> {
  const { protocol, host } = new URL(deps.issuer)
  const mount = mountOf(deps.issuer)

  return async (req, res, deadlineMs) => {
    const target = localTarget(req.url ?? '', mount)
    const path = target.split('?', 1)[0] ?? ''
    const route = findRoute(path)
    if (route === undefined) return false
    res.setHeader('x-content-type-options', 'nosniff')
    nameRequest(req, res)
    if (!route.methods.includes(req.method ?? '')) {
      refuseMethod(deps, { ...route, path, req, res })
      return true
    }
    // HEAD is answered as GET, without content: metrics and limits treat it the same (RFC 9110 section 9.3.2).
    if (req.method === 'HEAD' && !PROGRAM_KINDS.has(route.kind)) req.method = 'GET'
    for (const name of IGNORED_HEADERS) delete req.headers[name]
    req.headers.host = host
    req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
    if (route.kind === 'api' || route.kind === 'token') req.headers.accept = 'application/json'
    // oidc-provider derives its mount point from the difference of the two URLs.
    Object.assign(req, { originalUrl: mount + target, url: target })
    try {
      await inTime(req, deadlineMs, answer(deps, { kind: route.kind, path, req, res }))
    } catch (err) {
      fail(deps, { kind: route.kind, path, error: err, req, res })
    }
    return true
  }
}

/** Rejects with PdpError `store_unavailable` at the deadline. The late work goes on; its answer is dropped. */
function inTime(req: IncomingMessage, deadlineMs: number | undefined, work: Promise<void>): Promise<void> {
  if (deadlineMs === undefined) return work
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new PdpError('store_unavailable', 'there was no answer in time'))
    work.finally(onceLate(req, deadlineMs, late)).then(resolve, reject)
  })
}

async function answer(
  deps: HandlerDeps,
  request: { kind: Kind; path: string; req: IncomingMessage; res: ServerResponse },
): Promise<void> {
  const { kind, path, req, res } = request
  switch (kind) {
    case 'interaction':
      return answerInteraction(deps, { req, res, uid: path.slice(path.lastIndexOf('/') + 1) })
    case 'approval':
      return answerApproval(deps, req, res)
    case 'account':
      return deps.account.answer(req, res, path)
    case 'signed-out':
      return deps.signedOutElsewhere(req, res, path.slice(path.lastIndexOf('/') + 1))
    case 'userinfo':
      return answerUserinfo(deps, req, res)
    case 'resource':
      return answerResourceMetadata(deps.issuer, res)
    case 'token': {
      const translated = req.method === 'POST' ? await deps.tokenEndpoints.translate(req) : req
      if (translated !== null) return deps.callback(translated, res)
      return void answerOauth(res, STATUS.tooLarge, {
        error: 'invalid_request',
        error_description: 'the form is too large',
      })
    }
    default:
      return answerPage(deps, request)
  }
}

async function answerPage(
  deps: HandlerDeps,
  { path, req, res }: { readonly path: string; readonly req: IncomingMessage; readonly res: ServerResponse },
): Promise<void> {
  const url = await repeatedByGet(req, path, deps.issuer)
  if (url === undefined) return deps.callback(req, res)
  if (url !== null) return goByGet(res, url)
  const page = errorPage(deps.frameOf(req), { trouble: 'largeForm', code: 'invalid_request' })
  res.writeHead(STATUS.tooLarge, page.headers).end(page.html)
}

const answerOauth = (res: ServerResponse, status: number, error: { error: string; error_description: string }) =>
  res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(error))

const answerProblem = (res: ServerResponse, status: number, code: ProblemCode) =>
  res
    .writeHead(status, { 'content-type': PROBLEM_MEDIA_TYPE, 'cache-control': 'no-store' })
    .end(JSON.stringify({ ...problem(code), status }))

/** Sets the request id that pages show and the log has: that of the server in front, or else the caller's, or a new one. */
function nameRequest(req: IncomingMessage, res: ServerResponse): void {
  const given = res.getHeader('x-request-id') ?? req.headers['x-request-id']
  const id = typeof given === 'string' && isRequestId(given) ? given : randomUUID()
  req.headers['x-request-id'] = id
  res.setHeader('x-request-id', id)
}

function findRoute(path: string): Route | undefined {
  const exact = ROUTES.get(path)
  if (exact !== undefined) return exact
  return UNDER.find(([prefix]) => path.startsWith(prefix) && UID.test(path.slice(prefix.length)))?.[1]
}

/** The request's path below the issuer's path, which a proxy may have removed. */
function localTarget(target: string, mount: string): string {
  if (mount === '') return target
  const path = target.split('?', 1)[0]
  const inserted = INSERTED.find((wellKnown) => path === wellKnown + mount)
  if (inserted !== undefined) return inserted
  return target.startsWith(`${mount}/`) ? target.slice(mount.length) : target
}

function refuseMethod(
  { frameOf }: Pick<HandlerDeps, 'frameOf'>,
  { kind, methods, path, req, res }: Route & { path: string; req: IncomingMessage; res: ServerResponse },
): void {
  const status = STATUS.methodUnsupported
  res.setHeader('allow', methods.join(', '))
  const isBrowser = !PROGRAM_KINDS.has(kind) && req.headers.accept?.includes('text/html') === true
  if (isBrowser) {
    const page = errorPage(frameOf(req), {
      trouble: 'application',
      code: 'invalid_request',
      detail: `${req.method} is not supported here`,
      again: path,
    })
    return void res.writeHead(status, page.headers).end(page.html)
  }
  answerProblem(res, status, 'method_unsupported')
}

const PROBLEM_KINDS: ReadonlySet<Kind> = new Set(['userinfo', 'resource'])
const OAUTH_KINDS: ReadonlySet<Kind> = new Set(['api', 'token', 'signed-out'])
const PROGRAM_KINDS: ReadonlySet<Kind> = new Set([...PROBLEM_KINDS, ...OAUTH_KINDS])
const FAILED = { trouble: 'failed', code: 'server_error' } as const
const DETAILS = { unavailable: DATABASE_AWAY, failed: 'an unexpected error occurred' }

/** Answers in the format of the route's other errors: problem details, an OAuth error, or a page. */
function fail(
  deps: HandlerDeps,
  failure: { kind: Kind; path: string; error: unknown; req: IncomingMessage; res: ServerResponse },
): void {
  const { kind, path, error, req, res } = failure
  // A client that leaves while it sends its request is no failure of ours.
  if (req.destroyed && !req.complete) return
  const frame = deps.frameOf(req)
  deps.log.error({ event: 'identity_failed', request_id: frame.requestId, path, err: error })
  if (res.headersSent) return void res.destroy()
  const isUnavailable = error instanceof PdpError && error.code === 'store_unavailable'
  const status = isUnavailable ? STATUS.unavailable : STATUS.failed
  if (isUnavailable) res.setHeader('retry-after', '1')
  const view = isUnavailable ? UNAVAILABLE : FAILED
  if (PROBLEM_KINDS.has(kind)) return void answerProblem(res, status, isUnavailable ? 'store_unavailable' : 'internal')
  if (OAUTH_KINDS.has(kind))
    return void answerOauth(res, status, { error: view.code, error_description: DETAILS[view.trouble] })
  const page = errorPage(frame, { ...view, again: req.url ?? path })
  res.writeHead(status, page.headers).end(page.html)
}
