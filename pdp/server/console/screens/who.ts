/** Two screens: subjects that may do something, and resources on which a subject may; as pages or CSV, each row with its question. */

import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { typeOf } from '../../../shared/domain/names.ts'
import { existsAsSubject } from '../../serve/decisions/answer.ts'
import { asRequestProblem, RequestProblem } from '../../serve/http/status.ts'
import { SCREEN_LINKS } from '../layout.ts'
import { address, alert, csv, field, hidden, link, name, problems, status } from '../parts.ts'
import {
  isSupposed,
  parametersOf,
  readSubject,
  readSupposed,
  subjectText,
  supposedFields,
  supposedOf,
} from '../question.ts'
import { didYouMeanPerson, nobody } from '../sections/near-people.ts'
import { reachOf } from '../sections/reach.ts'
import { typesFor } from '../sections/suggestions.ts'
import { countOf, pageByPage, table } from '../sections/table.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const PAGE_SIZE = 100
/** How many relations the overview of a resource shows. */
const RELATIONS_MAX = 50
const HOLDERS_SHOWN = 5
const EXPORT_PAGE_SIZE = 1_000
/** How many pages one export reads at most. */
const EXPORT_PAGES_MAX = 100

type Page = {
  readonly items: readonly string[]
  readonly next_page_token: string | null
  readonly complete: boolean
  readonly undecided: readonly { readonly item: string; readonly missing_context: readonly string[] }[]
  readonly revision: string
  readonly revision_unchanged: boolean
}
type List = {
  readonly kind: 'who' | 'what'
  readonly caption: Html
  /** True if the question is complete. */
  readonly isAsked: boolean
  /** The question as the API takes it. Throws RequestProblem with the place of a value that cannot be read. */
  readonly body: () => object
  /** The answer if the question names only a subject or only a resource. */
  readonly overview: () => Promise<Html>
  /** The parameters of the question for a row. */
  readonly ask: (item: string) => { readonly [name: string]: string }
  readonly form: Html
}

export const showWho = async (visit: ConsoleVisit): Promise<View> => {
  const { query } = visit
  const [resource, relation, type] = [
    query('resource').trim(),
    query('relation').trim(),
    query('type').trim() || 'user',
  ]
  const relations = await relationsOf(visit, typeOf(resource))
  return show(visit, {
    kind: 'who',
    caption: html`Every ${name(type)} that has ${name(relation)} on ${name(resource)}`,
    isAsked: resource !== '' && relation !== '',
    body: () => ({ resource, relation, type, ...suppositionOf(visit) }),
    overview: async () => (resource === '' ? emptyHint('who') : holdersOf(visit, { resource, relations, type })),
    ask: (item) => ({ subject: item, relation, resource }),
    form: html`${field({ name: 'resource', label: 'Resource', value: resource, required: true, suggest: 'resource', hint: 'Such as invoice:42.' })}
${field({ name: 'relation', label: 'Relation or permission', value: relation, among: relations, hint: 'Empty: every relation of its type.' })}
${field({ name: 'type', label: 'Type of the subjects', value: type, required: true, among: ['user', 'service', 'group'] })}`,
  })
}

export const showWhat = async (visit: ConsoleVisit): Promise<View> => {
  const { query } = visit
  const [subject, relation, type] = [subjectText(query('subject')), query('relation').trim(), query('type').trim()]
  const [types, relations] = [await typesFor(visit, 'resource'), await relationsOf(visit, type)]
  return show(visit, {
    kind: 'what',
    caption: html`Every ${name(type)} on which ${name(subject)} has ${name(relation)}`,
    isAsked: subject !== '' && relation !== '' && type !== '',
    body: () => ({ subject: subjectOf(subject), relation, type, ...suppositionOf(visit) }),
    overview: async () => (subject === '' ? emptyHint('what') : reachOf(visit, subjectOf(subject), supposedOf(visit))),
    ask: (item) => ({ subject, relation, resource: item }),
    form: html`${field({ name: 'subject', label: 'Subject', value: subject, required: true, suggest: 'subject', hint: 'Such as alice or group:staff#member.' })}
${field({ name: 'type', label: 'Type of the resources', value: type, among: types, hint: 'Empty: every type and relation.' })}
${field({ name: 'relation', label: 'Relation or permission', value: relation, among: relations })}`,
  })
}

const relationsOf = async ({ deps, organization }: ConsoleVisit, type: string): Promise<readonly string[]> =>
  organization === null || type === '' ? [] : deps.management.pdp.relations(organization, type)

/** For each relation, some of its holders. */
async function holdersOf(
  visit: ConsoleVisit,
  {
    resource,
    relations,
    type,
  }: { readonly resource: string; readonly relations: readonly string[]; readonly type: string },
): Promise<Html> {
  await visit.requireScope('decisions:read')
  const { organization: org, deps } = visit
  const supposed = readSupposed(supposedOf(visit))
  const more = parametersOf(supposedOf(visit))
  const rows: (readonly (Html | string)[])[] = []
  for (const relation of org === null ? [] : relations.slice(0, RELATIONS_MAX)) {
    const question = { ...supposed, organization: org ?? '', resource, relation, type, pageSize: PAGE_SIZE }
    const { items, nextPageToken, complete } = await filled(
      (from) => deps.management.pdp.listSubjects({ ...question, ...(from !== null && { pageToken: from }) }),
      ({ items, nextPageToken }) => (items.length === 0 ? nextPageToken : null),
    )
    const isAll = nextPageToken === null && complete
    if (items.length === 0 && isAll) continue
    const some = items.slice(0, HOLDERS_SHOWN)
    rows.push([
      name(relation),
      link(
        address('who', { org, resource, relation, type, ...more }),
        isAll || items.length > 0 ? `${isAll ? '' : 'at least '}${items.length}` : 'look further',
      ),
      html`${joined(some.map((item) => link(address('ask', { org, subject: item, relation, resource, ...more }), name(item))))}${items.length > some.length ? ' …' : EMPTY}`,
    ])
  }
  const stored = link(address('relationships', { org, object: resource }), 'Its stored relationships')
  return html`<p class="actions">${stored}</p>${table(visit, {
    id: 'holders',
    caption: html`Every ${name(type)} that has something on ${name(resource)}, by relation`,
    columns: ['Relation', { title: 'Count', number: true }, 'Such as'],
    rows,
    empty: html`<p>No ${name(type)} has a relation on ${name(resource)}. ${relations.length === 0 ? 'No model gives its type a relation: name one.' : EMPTY}</p>`,
  })}`
}

function subjectOf(text: string): AskedSubject {
  const subject = readSubject(text)
  if (subject === null)
    throw new RequestProblem('request_invalid', `${text} names no subject. Write type:id, such as user:alice.`)
  return subject
}

function suppositionOf(visit: ConsoleVisit): object {
  const { contextualTuples, withoutTuples, asOfMs, context } = readSupposed(supposedOf(visit))
  return {
    ...(contextualTuples !== undefined && { contextual_tuples: contextualTuples }),
    ...(withoutTuples !== undefined && { without_tuples: withoutTuples }),
    ...(asOfMs !== undefined && { as_of: new Date(asOfMs).toISOString() }),
    ...(context !== undefined && { context }),
  }
}

async function show(visit: ConsoleVisit, list: List): Promise<View> {
  await visit.requireScope('decisions:read')
  const { organization, query } = visit
  const { title } = SCREEN_LINKS[list.kind]
  const supposed = supposedOf(visit)
  const form = html`<form method="get" action="/console/${list.kind}" class="question">${hidden('org', organization ?? '')}
${list.form}<button type="submit">List</button>${supposedFields(supposed, visit.reading)}</form>
${isSupposed(supposed) ? status('The list supposes what the question did: relationships, a time or a context.') : EMPTY}`
  if (organization === null) return { title, body: html`${form}${emptyHint(list.kind)}` }
  try {
    if (!list.isAsked) return { title, body: html`${form}${await unknownSubject(visit, list)}${await list.overview()}` }
    if (query('format') === 'csv') return await exportOf(visit, list)
    const page = await filled(
      (from) => read(visit, list, { size: PAGE_SIZE, token: from ?? query('page') }),
      ({ items, next_page_token: next }) => (items.length === 0 ? next : null),
    )
    const unknown = page.items.length === 0 ? await unknownIn(visit, list) : EMPTY
    return { title, body: html`${form}${unknown}${await pageOf(visit, list, page)}` }
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code !== 'request_invalid') throw err
    return { title, body: html`${form}${problems(message, issues)}` }
  }
}

/** A hint about a name in the question that does not exist, most often a typing error. */
async function unknownIn(visit: ConsoleVisit, list: List): Promise<Html> {
  const subject = await unknownSubject(visit, list)
  return subject === EMPTY ? unknownRelation(visit) : subject
}

async function unknownSubject(visit: ConsoleVisit, { kind }: List): Promise<Html> {
  const { organization: org, query } = visit
  const subject = kind === 'what' ? readSubject(subjectText(query('subject'))) : null
  if (subject === null || (await existsAsSubject(visit.deps.management.directory, subject, org ?? ''))) return EMPTY
  const meant = await didYouMeanPerson(visit, subject, (near) =>
    address('what', {
      org,
      subject: near,
      relation: query('relation'),
      type: query('type'),
      ...parametersOf(supposedOf(visit)),
    }),
  )
  return alert(html`${nobody(subject)}${meant}`)
}

/** A hint about a relation that no model declares: nobody has it. */
async function unknownRelation({ deps, organization, query }: ConsoleVisit): Promise<Html> {
  const [relation, type] = [query('relation').trim(), typeOf(query('resource').trim()) || query('type').trim()]
  if (organization === null || type === 'organization' || type === 'app') return EMPTY
  const declared = await deps.management.pdp.relations(organization, type)
  if (declared.includes(relation)) return EMPTY
  if (declared.length === 0) return alert(html`No model gives type ${name(type)} a relation.`)
  return alert(
    html`The model gives type ${name(type)} no relation ${name(relation)}. It has ${joined(declared.map(name))}.`,
  )
}

function emptyHint(kind: List['kind']): Html {
  const text =
    kind === 'who'
      ? html`<p>Name a resource, and get everybody who has something on it: by a relationship, a group, a rule, a membership or a role. With a relation as well: the whole list.</p>`
      : html`<p>Name a subject, and get everything that it can reach, by type and relation. With a type and a relation as well: every such resource.</p>`
  return html`<div class="empty">${text}</div>`
}

/** How long empty pages of a list are passed over: those whose candidates all turned out to have nothing. */
const EMPTY_PAGES_MS = 1_500

/** The first page that `next` does not pass over, or the last that there was time for. */
async function filled<P>(readFrom: (token: string | null) => Promise<P>, next: (page: P) => string | null): Promise<P> {
  const startedMs = performance.now()
  let page = await readFrom(null)
  for (let token = next(page); token !== null && performance.now() - startedMs < EMPTY_PAGES_MS; token = next(page))
    page = await readFrom(token)
  return page
}

function read(visit: ConsoleVisit, { kind, body }: List, page: { size: number; token: string }): Promise<Page> {
  const query = new URLSearchParams({
    page_size: String(page.size),
    ...(page.token === '' ? {} : { page_token: page.token }),
  })
  const org = encodeURIComponent(visit.organization ?? '')
  const what = kind === 'who' ? 'list-subjects' : 'list-resources'
  return visit.api<Page>('POST', `/v1/organizations/${org}/${what}?${query}`, body())
}

async function pageOf(visit: ConsoleVisit, list: List, page: Page): Promise<Html> {
  const { query, organization: org } = visit
  const state = {
    org,
    resource: query('resource'),
    subject: subjectText(query('subject')),
    relation: query('relation'),
    type: query('type'),
    ...parametersOf(supposedOf(visit)),
  }
  const rows = page.items.map((item) => [
    name(item),
    link(address('ask', { org, ...list.ask(item), ...parametersOf(supposedOf(visit)) }), 'Why?'),
  ])
  const undecided = page.undecided.map(
    ({ item, missing_context: missing }) => html`<li>${name(item)}: needs ${missing.join(', ')}</li>`,
  )
  const total = await countOf(
    visit,
    { id: 'list', next: page.next_page_token, pageSize: PAGE_SIZE },
    pageByPage(async (from: string | null) => {
      const { items, next_page_token: next } = await read(visit, list, { size: EXPORT_PAGE_SIZE, token: from ?? '' })
      return { items, next }
    }),
  )
  return html`${page.complete ? EMPTY : alert('The list is not complete: something in it could not be decided.')}
${undecided.length === 0 ? EMPTY : html`<ul class="details">${undecided}</ul>`}
${table(visit, { id: 'list', caption: list.caption, columns: ['Name', 'Ask'], rows, total, file: address(list.kind, { ...state, format: 'csv' }), next: page.next_page_token === null ? null : address(list.kind, { ...state, page: page.next_page_token }), empty: page.next_page_token === null ? nothing(visit, list.kind) : html`<p>Nothing on this page; there is another one.</p>` })}
${page.next_page_token === null ? html`<p class="note">That is all, read in one snapshot.</p>` : page.revision_unchanged ? EMPTY : html`<p class="note">Something changed since the first page.</p>`}`
}

function nothing({ organization: org, query }: ConsoleVisit, kind: List['kind']): Html {
  const [column, text] = kind === 'who' ? ['object', query('resource').trim()] : ['subject', query('subject').trim()]
  const where = link(address('relationships', { org, [column]: text }), name(text))
  return html`<p>No relationship, group, rule, membership or role gives it. See the relationships of ${where}.</p>`
}

/** The list as a file. Its last row has the revision, and tells whether the list is complete. */
async function exportOf(visit: ConsoleVisit, list: List): Promise<View> {
  const rows: string[][] = [['name']]
  let [token, complete, steady, revision]: [string | null, boolean, boolean, string] = ['', true, true, '']
  for (let pages = 0; token !== null && pages < EXPORT_PAGES_MAX; pages++) {
    const page: Page = await read(visit, list, { size: EXPORT_PAGE_SIZE, token })
    for (const item of page.items) rows.push([item])
    complete &&= page.complete
    steady &&= page.revision_unchanged
    revision = page.revision
    token = page.next_page_token
  }
  const whole = complete && token === null
  rows.push([
    `# ${whole ? 'complete' : 'not complete'}${steady ? '' : '; changed while it was read'}; revision ${revision}`,
  ])
  return { file: `${list.kind}.csv`, type: 'text/csv', text: csv(rows) }
}
