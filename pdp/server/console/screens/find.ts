/** Find: one field to find people, resources, groups, organizations, routes and requests, and for questions such as "bob invoice:7". */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { isId, isObject } from '../../../shared/domain/names.ts'
import { mayOpen, SCREEN_LINKS } from '../layout.ts'
import { address, link, name } from '../parts.ts'
import { readSubject, subjectText } from '../question.ts'
import { named, people, SUGGESTED_MAX } from '../sections/suggestions.ts'
import { table } from '../sections/table.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { requestIdIn } from './decisions.ts'

type Hit = { readonly kind: string; readonly text: string; readonly to: string; readonly more?: Html }
/** How many organizations and routes are searched. */
const LOOKED_AT_MAX = 2_000

export async function showFound(visit: ConsoleVisit): Promise<View> {
  if (!['decisions:read', 'relationships:read'].some(visit.may)) await visit.requireScope('directory:read')
  const text = visit.query('q').trim()
  const question = questionIn(visit, text)
  if (question !== null) return { goTo: question }
  const hits = text === '' ? [] : await hitsFor(visit, text)
  const [only] = hits
  if (hits.length === 1 && only !== undefined) return { goTo: only.to }
  const rows = hits.map(({ kind, text: found, to, more }) => [kind, link(to, name(found)), more ?? EMPTY])
  return {
    title: text === '' ? 'Find' : `Find: ${text}`,
    body: table(visit, {
      id: 'found',
      caption: hits.length >= SUGGESTED_MAX ? 'Found; there may be more' : 'Found',
      columns: ['Kind', 'Name', 'Do'],
      rows,
      empty: html`${text === '' ? EMPTY : html`<p>Nothing that you may see has ${name(text)} in it.</p>`}${HELP}`,
    }),
  }
}

const HELP = html`<p>Write part of a person's name, id or e-mail address; a resource or group such as <code>invoice:7</code>, or its
beginning; a request id; a route; or a whole question: <code>bob invoice:7</code>, <code>bob viewer invoice:7</code>.</p>`

/** The URL of a question: a subject and a resource, with or without a relation between them. */
function questionIn({ organization: org, may }: ConsoleVisit, text: string): string | null {
  const words = text.split(/\s+/)
  const [first = '', second = '', third = second] = words
  if (words.length < 2 || words.length > 3 || !may('decisions:read')) return null
  const subject = subjectText(first)
  if (readSubject(subject) === null || !isObject(third)) return null
  return address('ask', { org, subject, relation: words.length === 3 ? second : '', resource: third })
}

async function hitsFor(visit: ConsoleVisit, text: string): Promise<readonly Hit[]> {
  const found = await Promise.all([
    ofRequests(visit, text),
    ofObjects(visit, text),
    ofPeople(visit, text),
    ofOrganizations(visit, text),
    ofRoutes(visit, text),
  ])
  return found.flat()
}

async function ofRequests(visit: ConsoleVisit, text: string): Promise<readonly Hit[]> {
  const { organization: org, deps } = visit
  const request = requestIdIn(text)
  if (!visit.may('decisions:read')) return []
  for (const { organization, requestId, decisionId } of deps.decisions.latest())
    if (organization === org && (requestId === request || decisionId === request))
      return [{ kind: 'request', text: request, to: address('decisions', { org, request }) }]
  if (deps.archive === null || org === null) return []
  const found = await deps.archive.denied(org, { request }, { before: null, countMax: 1 })
  return found.map(() => ({ kind: 'request', text: request, to: address('decisions', { org, request }) }))
}

async function ofObjects(visit: ConsoleVisit, text: string): Promise<readonly Hit[]> {
  const { organization: org } = visit
  if (!text.includes(':')) return []
  const type = text.slice(0, text.indexOf(':'))
  const names = (await named(visit, text)).filter((one) => !one.includes('#') && !one.endsWith(':*'))
  return names.map((object) => ({
    kind: type,
    text: object,
    to: pageOf(org, object),
    more: html`<span class="row-actions">${link(address('who', { org, resource: object }), 'Who has access?')} ${link(address('what', { org, subject: type === 'group' ? `${object}#member` : object }), 'What can it reach?')}</span>`,
  }))
}

/** The URL of a subject's or object's page: a person's own page, the members of a group, or the subjects of another object. */
function pageOf(org: string | null, object: string): string {
  if (object.startsWith('user:')) return address('people', { org, user: object.slice('user:'.length) })
  return object.startsWith('group:')
    ? address('relationships', { org, object })
    : address('who', { org, resource: object })
}

async function ofPeople(visit: ConsoleVisit, text: string): Promise<readonly Hit[]> {
  const { organization: org } = visit
  const ids = await people(visit, text.replace(/^user:/, ''))
  return ids.map((id) => ({
    kind: 'person',
    text: id,
    to: address('people', { org, user: id }),
    more: link(address('what', { org, subject: `user:${id}` }), 'What can they reach?'),
  }))
}

async function ofOrganizations(visit: ConsoleVisit, text: string): Promise<readonly Hit[]> {
  const wanted = text.toLowerCase()
  const { organizations, deps } = visit
  const exact =
    visit.mayEverywhere('directory:read') && isId(text) && (await deps.management.pdp.ancestors(text)) !== null
      ? [{ id: text, name: text }]
      : []
  const known = new Map([...organizations, ...exact].map((one) => [one.id, one.name]))
  return [...known]
    .filter(([id, title]) => id.toLowerCase().includes(wanted) || title.toLowerCase().includes(wanted))
    .map(([id]) => ({ kind: 'organization', text: id, to: address('organization', { org: id }) }))
}

function ofRoutes(visit: ConsoleVisit, text: string): readonly Hit[] {
  const { organization: org, deps } = visit
  if (!mayOpen(visit, SCREEN_LINKS.routes)) return []
  const wanted = text.toLowerCase()
  const found = new Map<string, Hit>()
  for (const sidecar of deps.routes.all())
    for (const { id } of sidecar.routes.slice(0, LOOKED_AT_MAX))
      if (id.toLowerCase().includes(wanted) && found.size < SUGGESTED_MAX)
        found.set(id, {
          kind: 'route',
          text: id,
          to: address('routes', { org, sidecar: sidecar.name }),
          more: link(address('decisions', { org, route: id }), 'Decisions'),
        })
  return [...found.values()]
}
