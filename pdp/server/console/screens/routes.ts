/** Routes: what each connected sidecar reports that it enforces, routes without requests, and a trial of a request. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { ReportedRoute, ReportedSidecar, Tried } from '../../serve/grpc/route-reports.ts'
import { RequestProblem } from '../../serve/http/status.ts'
import { SCREEN_LINKS } from '../layout.ts'
import { address, alert, field, hidden, instant, link, name, status, words } from '../parts.ts'
import { routeDifferences } from '../sections/route-differences.ts'
import { table } from '../sections/table.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const TEXT_MAX = 4_096
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const SHOWN = ['', 'unasked', 'untested', 'denied', 'shadow'] as const

/** Sidecars belong to services and not to organizations, so only a person with rights everywhere may see them. */
export async function showRoutes(visit: ConsoleVisit): Promise<View> {
  if (!visit.mayEverywhere('decisions:read'))
    throw new RequestProblem(
      'permission_denied',
      'this needs the permission portcullis:decisions:read in the whole environment, from a role of app portcullis',
    )
  const all = visit.deps.routes.all()
  const wanted = visit.query('sidecar')
  const chosen = all.find((sidecar) => sidecar.name === wanted) ?? (wanted === '' ? all[0] : undefined)
  const gone =
    wanted === '' || chosen !== undefined
      ? EMPTY
      : alert(html`Sidecar ${name(wanted)} is not connected to this PDP any more.`)
  return {
    title: SCREEN_LINKS.routes.title,
    body: html`${gone}${sidecars(visit, all)}${chosen === undefined ? EMPTY : await details(visit, chosen)}`,
  }
}

function sidecars(visit: ConsoleVisit, all: readonly ReportedSidecar[]): Html {
  const { organization: org } = visit
  const files = Map.groupBy(all, ({ resource }) => resource)
  const isDiffering = [...files].some(([, of]) => new Set(of.map(({ fileHash }) => fileHash)).size > 1)
  const rows = all.map((sidecar) => [
    link(address('routes', { org, sidecar: sidecar.name }), name(sidecar.name)),
    name(sidecar.resource),
    html`<span class="id">${name(sidecar.fileHash)}</span>`,
    String(sidecar.routes.length + sidecar.leftOut),
    String(sidecar.routes.filter(isUnasked).length),
    instant(sidecar.connectedMs),
    name(sidecar.caller),
  ])
  return html`${routeDifferences(visit, all)}${all.length > 0 && !isDiffering ? status('All sidecars of each resource enforce the same route file.') : EMPTY}
${table(visit, {
  id: 'sidecars',
  caption: 'Sidecars connected to this PDP',
  columns: [
    'Sidecar',
    'Resource',
    'Route file',
    { title: 'Routes', number: true },
    { title: 'Never asked', number: true },
    'Connected',
    'As',
  ],
  rows,
  empty: html`<p>No sidecar is connected to this PDP. A sidecar reports its routes by itself:</p><pre tabindex="0"><code>portcullis-sidecar run --file routes.yaml</code></pre>`,
})}`
}

const isUntested = ({ tests }: ReportedRoute): boolean => tests === 0
const isUnasked = ({ requests }: ReportedRoute): boolean => requests === 0

async function details(visit: ConsoleVisit, sidecar: ReportedSidecar): Promise<Html> {
  const warnings = sidecar.warnings.map((warning) => html`<li>${words(warning)}</li>`)
  return html`<section aria-labelledby="of-sidecar"><h2 id="of-sidecar">${name(sidecar.name)}</h2>
${tryForm(visit, sidecar)}${await tried(visit, sidecar)}
${warnings.length === 0 ? EMPTY : html`<h2>What its route file is warned about</h2><ul class="details">${warnings}</ul>`}
${routeTable(visit, sidecar)}</section>`
}

function tryForm({ query, organization: org }: ConsoleVisit, { name: sidecar }: ReportedSidecar): Html {
  const among = METHODS.map((method): readonly [string, string] => [method, method])
  return html`<form method="get" action="/console/routes" class="question">${hidden('org', org ?? '')}${hidden('sidecar', sidecar)}
${field({ name: 'method', label: 'Method', value: query('method') || 'GET', options: among })}
${field({ name: 'target', label: 'Path, or URL with host', value: query('target'), required: true, hint: 'Such as /invoices/42?page=2.' })}
${field({ name: 'claims', label: 'Claims of the token', value: query('claims'), lines: 2, hint: 'A JSON object, such as {"sub": "alice", "org": "acme"}; empty: no token.' })}
<button type="submit">Try</button></form>`
}

/** The trial of a request by the sidecar's own code, which forwards nothing and asks no question. */
async function tried({ query, organization: org }: ConsoleVisit, sidecar: ReportedSidecar): Promise<Html> {
  const [method, target, claims] = [query('method') || 'GET', query('target').trim(), query('claims').trim()]
  if (target === '') return EMPTY
  if (Math.max(method.length, target.length, claims.length) > TEXT_MAX)
    return alert(`A request to try has at most ${TEXT_MAX} characters in each field.`)
  const answer = await sidecar.try({ method, target, claims })
  if (answer === null) return alert('The sidecar did not answer in time. Nothing is wrong with the request: try again.')
  const { route, parameters, denial } = answer
  const matched = route === '' ? html`No route matches.` : html`${name(`${method} ${target}`)} takes ${name(route)}.`
  const values = parameters.map((parameter) => html`<li>${name(parameter)}</li>`)
  return html`<section class="answer ${denial === '' ? 'is-open' : 'is-denied'}" aria-labelledby="tried"><h2 id="tried">${matched}</h2>
${denial === '' ? EMPTY : html`<p class="sentence">The sidecar refuses it by itself: ${name(denial)}.</p>`}
${values.length === 0 ? EMPTY : html`<ul class="details">${values}</ul>`}${asks(org, answer, subjectIn(claims))}</section>`
}

function asks(org: string | null, { asks: questions, route, denial }: Tried, subject: string): Html {
  if (questions.length === 0)
    return route === '' || denial !== ''
      ? EMPTY
      : html`<p class="note">It asks the PDP for nothing but whether the token is active, if the route is not public.</p>`
  const items = questions.map((question) => {
    const [relation = '', resource = ''] = question.split(' ')
    const isCheck = relation !== 'entitlement' && relation !== 'scope'
    return html`<li>${isCheck ? link(address('ask', { org, subject, relation, resource }), name(question)) : name(question)}</li>`
  })
  return html`<p>It asks the PDP:</p><ul class="details">${items}</ul>`
}

/** The subject of the claims, for links to the questions. */
function subjectIn(claims: string): string {
  const sub = /"sub"\s*:\s*"([^"\\]{1,256})"/.exec(claims)?.[1]
  return sub === undefined ? '' : `user:${sub}`
}

function routeTable(visit: ConsoleVisit, sidecar: ReportedSidecar): Html {
  const { query, organization: org } = visit
  const { routes, leftOut } = sidecar
  const show = SHOWN.find((one) => one === query('show')) ?? ''
  const found = routes.filter((route) => isShown(route, show))
  const asked = routes.length - routes.filter(isUnasked).length
  const would = routes.reduce((sum, { shadowed }) => sum + shadowed, 0)
  const state = { org, sidecar: sidecar.name }
  const untestedCount = routes.filter(isUntested).length
  const filters = [
    link(address('routes', state), 'all'),
    link(address('routes', { ...state, show: 'unasked' }), `never asked (${routes.length - asked})`),
    ...(sidecar.tests === 0
      ? []
      : [link(address('routes', { ...state, show: 'untested' }), `reached by no test (${untestedCount})`)]),
    link(
      address('routes', { ...state, show: 'denied' }),
      `with denials (${routes.filter((one) => one.denied > 0).length})`,
    ),
    link(
      address('routes', { ...state, show: 'shadow' }),
      `in shadow mode (${routes.filter((one) => one.shadow).length})`,
    ),
  ]
  const rows = found.map(({ id, check, shadow, requests, denied, shadowed, tests }) => [
    html`<span class="text">${name(id)}</span>`,
    html`<span class="text">${name(check)}</span>${shadow ? html` <span class="note">shadow</span>` : EMPTY}`,
    ...(sidecar.tests === 0 ? [] : [tests === 0 ? html`<span class="note">none</span>` : String(tests)]),
    requests === 0 ? html`<span class="note">never</span>` : String(requests),
    denied === 0 ? '0' : link(address('decisions', { org, route: id, outcome: 'denied' }), String(denied)),
    shadow ? String(shadowed) : html`<span class="note">–</span>`,
  ])
  const tested =
    sidecar.tests === 0
      ? ''
      : `, and ${routes.length - untestedCount} are reached by one of the ${sidecar.tests} tests in its route file`
  return html`<p>${String(asked)} of ${String(routes.length)} routes were asked since the sidecar loaded them${tested}. Show: ${filters.map((one, i) => html`${i === 0 ? '' : ' · '}${one}`)}</p>
${would === 0 ? EMPTY : status(`Without shadow mode ${would} ${would === 1 ? 'request' : 'requests'} would have been refused.`)}
${leftOut === 0 ? EMPTY : html`<p class="note">${String(leftOut)} more routes were not reported.</p>`}
${table(visit, {
  id: 'routes',
  caption: 'Routes and what each asks',
  columns: [
    'Route',
    'Check',
    ...(sidecar.tests === 0 ? [] : [{ title: 'Tests', number: true } as const]),
    { title: 'Requests', number: true },
    { title: 'Denied', number: true },
    { title: 'Shadow mode would deny', number: true },
  ],
  rows,
  empty: html`<p>No route is like this.</p>`,
})}`
}

function isShown(route: ReportedRoute, show: (typeof SHOWN)[number]): boolean {
  if (show === 'unasked') return isUnasked(route)
  if (show === 'untested') return isUntested(route)
  if (show === 'denied') return route.denied > 0
  return show === '' || route.shadow
}
