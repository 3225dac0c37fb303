/** People: a list, searched by part of the id, the name or the address. */

import { type Html, html } from '../../../shared/base/html.ts'
import { address, called, field, hidden, link, name } from '../parts.ts'
import { countOf, table } from '../sections/table.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { showPerson } from './person.ts'

const PAGE_SIZE = 100

type Person = { readonly id: string; readonly email: string | null; readonly name: string | null }
type Page<T> = { readonly items: readonly T[]; readonly next_page_token: string | null }
type Member = { readonly user: string; readonly role: string; readonly status: string }

export async function showPeople(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('directory:read')
  const { organization: org, deps } = visit
  const user = visit.query('user').trim()
  if (user === '') return showAll(visit)
  const everywhere = visit.mayEverywhere('directory:read')
  const { directory } = deps.management
  if (everywhere && user.includes('@') && (await directory.user(user)) === null) {
    const found = await directory.userByEmail(user)
    if (found !== null) return { goTo: address('people', { org, user: found.id }) }
  }
  return showPerson(visit, user, search(visit, user))
}

/** The form of the search. People who may see the whole directory search in it; others find members by id. */
function search(visit: ConsoleVisit, text: string): Html {
  const { organization: org } = visit
  const value = { value: text, suggest: 'person' as const }
  const one = visit.mayEverywhere('directory:read')
    ? field({ name: 'search', label: 'Part of a name, an id or an e-mail address', ...value })
    : field({ name: 'user', label: 'Id of a person', ...value })
  return html`<form method="get" action="/console/people" class="question">${hidden('org', org ?? '')}${one}<button type="submit">Find</button></form>`
}

/** All people for a person who may see the whole environment; else the members of the organization. */
async function showAll(visit: ConsoleVisit): Promise<View> {
  const { organization: org, query } = visit
  const everywhere = visit.mayEverywhere('directory:read')
  const wanted = query('search').trim()
  const page = new URLSearchParams({
    page_size: String(PAGE_SIZE),
    ...(everywhere && wanted !== '' ? { search: wanted } : {}),
    ...(query('page') === '' ? {} : { page_token: query('page') }),
  })
  const path = everywhere ? `/v1/users?${page}` : `/v1/organizations/${encodeURIComponent(org ?? '')}/members?${page}`
  const { items, next_page_token: next } = await visit.api<Page<Person & Member>>('GET', path)
  const [only] = items
  if (everywhere && wanted !== '' && items.length === 1 && next === null && only !== undefined)
    return { goTo: address('people', { org, user: only.id }) }
  const { store, directory } = visit.deps.management
  const total = await countOf(visit, { id: 'people', next, pageSize: PAGE_SIZE }, (from) =>
    everywhere
      ? directory.users({ ...from, ...(wanted === '' ? {} : { search: wanted }) })
      : store.members(org ?? '', from),
  )
  const rows = items.map((item) => {
    const id = everywhere ? item.id : item.user
    return [
      link(address('people', { org, user: id }), name(id)),
      called(everywhere ? (item.name ?? '') : item.role),
      called(everywhere ? (item.email ?? '') : item.status),
    ]
  })
  return {
    title: 'People',
    body: html`${search(visit, wanted)}
${table(visit, { id: 'people', caption: captionOf(everywhere, wanted), columns: everywhere ? ['Id', 'Name', 'E-mail'] : ['Id', 'Tier', 'Status'], rows, total, next: next === null ? null : address('people', { org, search: wanted, page: next }), empty: wanted === '' ? NOBODY_YET : html`<p>Nobody has ${name(wanted)} in the name, the id or the address.</p>` })}`,
  }
}

const NOBODY_YET = html`<p>There is nobody yet.</p><pre tabindex="0"><code>portcullis user put alice --email alice@example.com</code></pre>`

function captionOf(isEverywhere: boolean, wanted: string): Html {
  if (!isEverywhere) return html`Members of the organization`
  return wanted === ''
    ? html`Everybody in the directory`
    : html`People with ${name(wanted)} in their name, id or address`
}
