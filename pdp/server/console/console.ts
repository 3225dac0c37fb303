/** The console: pages at `/console` on which people ask, look and change things with their own rights. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PATHS } from '../../identity/oauth/paths.ts'
import { CONSOLE_CALLBACK } from '../../identity/people/sign-in/console-sessions.ts'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { type Branding, imageSource, webUrl } from '../../shared/pages/brand.ts'
import { asHttpProblem } from '../serve/http/problem-response.ts'
import { isFault, RequestProblem, STATUS, SUCCESS } from '../serve/http/status.ts'
import { addMethodProblem } from '../serve/http-server.ts'
import { addAssets } from './assets.ts'
import { addPictures } from './help/help.ts'
import { keptForm, refusedForm, sentForm, signInBeside } from './kept-form.ts'
import { frame, plainPage } from './layout.ts'
import { addLive } from './live.ts'
import { createOwnServer, type OwnServer } from './own-server.ts'
import { csv, link, name, problems } from './parts.ts'
import { SCREENS } from './screens.ts'
import { linesOf } from './sections/table.ts'
import { exactUrl, zoneIn } from './sections/times.ts'
import { addSignIn, isSame, localTarget, signedOut, signInUrl } from './sign-in.ts'
import { type ConsoleDeps, type ConsoleVisit, openVisit, type View, ZONE_COOKIE } from './visit.ts'

const FORM_BYTES_MAX = 1_048_576
const SEE_OTHER = 303
const headersFor = ({ logo }: Branding): { readonly [name: string]: string } => ({
  'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'${logoSource(logo)}; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'`,
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
})

function logoSource(logo: string | undefined): string {
  const url = webUrl(logo)
  return url === null ? '' : ` ${imageSource(url)}`
}

/** Call it before the server listens. */
export async function addConsole(
  app: FastifyInstance,
  deps: ConsoleDeps & { readonly masterKeys: MasterKeys },
): Promise<void> {
  const { issuer, identity, masterKeys, branding } = deps
  const headers = headersFor(branding)
  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const wantsPage = request.headers.accept?.includes('text/html') === true
    if (!wantsPage) throw new RequestProblem('route_unknown', 'there is nothing at this path')
    return reply.redirect('/console', SEE_OTHER)
  })
  const call = createOwnServer(app.server)
  await app.register(async (scope) => {
    const methods = new Map<string, Set<string>>()
    scope.addHook('onRoute', (route) => {
      route.schema = { ...route.schema, hide: true }
      const known = methods.get(route.url) ?? new Set()
      for (const method of [route.method].flat()) known.add(method)
      methods.set(route.url, known)
    })
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: FORM_BYTES_MAX },
      async (_request: unknown, text: string) => Object.fromEntries(new URLSearchParams(text)),
    )
    scope.addHook('onRequest', async (_request, reply) => {
      reply.headers(headers)
    })
    scope.setErrorHandler((error, request, reply) => refuse(deps, { error, request, reply }))
    addAssets(scope, branding)
    addPictures(scope)
    const signIn = addSignIn(scope, {
      issuer,
      identity,
      masterKeys,
      token: (form) => redeem(call, form),
    })
    const visitOf = async (request: FastifyRequest): Promise<ConsoleVisit | null> => {
      const current = await signIn.current(request)
      return current === null ? null : openVisit(call, deps, { request, ...current })
    }
    for (const { path, show, act } of SCREENS) {
      const url = path === '' ? '/console' : `/console/${path}`
      scope.get(url, async (request, reply) => {
        const visit = await visitOf(request)
        if (visit === null) return signIn.begin(reply, request.url)
        const exact = exactUrl(visit)
        if (exact !== null) return answer(visit, reply, { goTo: exact })
        const shown = show(visit).catch((err: unknown) => troubleWithin(visit, request, asHttpProblem(err)))
        return answer(visit, reply, await shown)
      })
      if (act === undefined) continue
      scope.post(url, { bodyLimit: FORM_BYTES_MAX }, async (request, reply) => {
        const visit = await visitOf(request)
        if (visit === null) return sessionOver(deps, request, reply)
        if (isOfEarlierSession(request, visit)) return answer(visit, reply, askAgain(visit))
        requireOwnForm(request, visit)
        return answer(
          visit,
          reply,
          await act(visit).catch((err: unknown) =>
            refusedForm({ ...visit, log: deps.log, requestId: request.id }, visit.sent, err),
          ),
        )
      })
    }
    scope.post('/console/zone', async (request, reply) => {
      const visit = await visitOf(request)
      if (visit === null) return sessionOver(deps, request, reply)
      requireOwnForm(request, visit)
      const zone = zoneIn(visit.form('zone').trim())
      reply.header('set-cookie', `${ZONE_COOKIE}=${zone}; Path=/console; Max-Age=31536000; SameSite=Lax`)
      return reply.redirect(new URL(localTarget(visit.form('to')), issuer).href, SEE_OTHER)
    })
    scope.post('/console/sign-out', async (request, reply) => {
      const visit = await visitOf(request)
      if (visit !== null) {
        // Also accepts a form of another session: a person who signed in as somebody else meanwhile may sign out, too.
        if (!isFromOwnPage(request, deps)) requireOwnForm(request, visit)
        await signIn.end(request, reply)
      }
      return reply.type('text/html; charset=utf-8').send(plainPage(branding, 'Signed out', signedOut))
    })
    // URLs of forms that a browser reloads, and the URL with a slash too many.
    for (const url of ['/console/', '/console/sign-out', '/console/zone'])
      scope.get(url, async (_request, reply) => reply.redirect('/console', SEE_OTHER))
    addLive(scope, { deps, visitOf })
    for (const [url, known] of [...methods]) addMethodProblem(scope, url, known)
    scope.all('/console/*', async () => {
      throw new RequestProblem('route_unknown', 'There is no such screen.')
    })
  })
}

/** The answer to a form whose session has ended: without what was sent, the person could take the sign-in for the form's next step. */
function sessionOver(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { url } = request
  const kept = isFromOwnPage(request, deps) ? keptForm(sentForm(url, request.body), null) : EMPTY
  const body = html`<p role="alert">Nothing was written: your session is over.</p>
${signInBeside(signInUrl(deps.issuer, url))}${kept}`
  return reply
    .code(STATUS.permission_denied.http)
    .type('text/html; charset=utf-8')
    .send(plainPage(deps.branding, 'Sign in once more', body))
}

/** A form that another site sent is never kept for the person to send. */
const isFromOwnPage = ({ headers }: FastifyRequest, { issuer }: ConsoleDeps): boolean =>
  headers.origin === new URL(issuer).origin

const isOfEarlierSession = (request: FastifyRequest, visit: ConsoleVisit): boolean =>
  isFromOwnPage(request, visit.deps) && !isSame(visit.form('csrf'), visit.csrf)

/** The answer to a form of an earlier session: a person, perhaps another one, signed in after the page was shown. */
const askAgain = ({ sent, csrf, person }: ConsoleVisit): View => ({
  title: 'Send it now?',
  status: STATUS.permission_denied.http,
  body: html`<p role="alert">Nothing was written yet: this form is of an earlier session. You are signed in as ${name(person.name)}.</p>
${keptForm(sent, csrf)}`,
})

/** Requires a form of ours that was made for this session. This protects in addition to the cookie's SameSite=Lax. */
function requireOwnForm(request: FastifyRequest, visit: ConsoleVisit): void {
  const { origin } = request.headers
  const isOurs = origin === undefined || origin === new URL(visit.deps.issuer).origin
  if (isOurs && isSame(visit.form('csrf'), visit.csrf)) return
  throw new RequestProblem('permission_denied', 'this form came from somewhere else, or from a session that is over')
}

function answer(visit: ConsoleVisit, reply: FastifyReply, page: View): FastifyReply {
  const view = fileOf(visit, page)
  if ('goTo' in view) return reply.redirect(new URL(view.goTo, visit.deps.issuer).href, SEE_OTHER)
  if ('file' in view) {
    reply.header('content-disposition', `attachment; filename="${view.file}"`)
    return reply.type(`${view.type}; charset=utf-8`).send(view.text)
  }
  return reply
    .code(view.status ?? SUCCESS.ok)
    .type('text/html; charset=utf-8')
    .send(frame(visit, view))
}

/** The CSV file of a table, if the URL asks for one in place of the page. */
function fileOf({ query, tables }: ConsoleVisit, view: View): View {
  const shown = 'body' in view ? tables.get(query('csv')) : undefined
  return shown === undefined ? view : { file: `${query('csv')}.csv`, type: 'text/csv', text: csv(linesOf(shown)) }
}

function refuse(
  { log, issuer, branding }: ConsoleDeps,
  { error, request, reply }: { error: unknown; request: FastifyRequest; reply: FastifyReply },
): FastifyReply {
  const problem = asHttpProblem(error)
  if (isFault(problem.code))
    log.error({ event: 'request_failed', request_id: request.id, code: problem.code, err: problem.cause })
  const { title, body } = troublePage(issuer, request, problem)
  return reply
    .code(STATUS[problem.code].http)
    .headers(problem.headers)
    .type('text/html; charset=utf-8')
    .send(plainPage(branding, title, body))
}

/** Shows the error inside the usual frame with its menu. Throws errors that are our fault, or whose answer needs header fields. */
function troubleWithin({ deps }: ConsoleVisit, request: FastifyRequest, problem: RequestProblem): View {
  if (isFault(problem.code) || Object.keys(problem.headers).length > 0) throw problem
  return { ...troublePage(deps.issuer, request, problem), status: STATUS[problem.code].http }
}

function troublePage(issuer: string, request: FastifyRequest, problem: RequestProblem): { title: string; body: Html } {
  const isDenied = problem.code === 'permission_denied'
  const isUnknown = problem.code === 'not_found' || problem.code === 'route_unknown'
  const title = isDenied ? 'You may not do this' : isUnknown ? 'Not found' : 'This did not work'
  const isPage = request.method === 'GET' && !request.url.startsWith(CONSOLE_CALLBACK)
  const to = isPage ? request.url : '/console'
  const [screen = '', query] = request.url.split('?', 2)
  const isOfAddress = isPage && query !== undefined && problem.code === 'request_invalid'
  const beginning = isOfAddress ? html`${link(screen, 'Open this screen from its beginning')} · ` : EMPTY
  const again = isFault(problem.code) && isPage ? html`${link(to, 'Try again')} · ` : beginning
  const body = html`${problems(problem.message, problem.issues)}
<p><small>Request ${request.id}</small></p>
<p>${again}${link('/console', 'Back to the start')} · ${link(signInUrl(issuer, to), 'Sign in again')}</p>`
  return { title, body }
}

/** Redeems the code at our own token endpoint inside this process, so that the browser never sees a token. */
async function redeem(call: OwnServer, form: URLSearchParams): Promise<string | null> {
  const { status, text } = await call({
    method: 'POST',
    path: PATHS.token,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
  const answered: unknown = status === SUCCESS.ok ? JSON.parse(text) : null
  if (typeof answered !== 'object' || answered === null || !('access_token' in answered)) return null
  return String(answered.access_token)
}
