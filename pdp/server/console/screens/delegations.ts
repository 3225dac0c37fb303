/** Clients that act for a person in the organization in view, with a button to end each delegation. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ACTS_FOR, clientOf, delegationTo, isDelegation, scopesOf } from '../../../shared/domain/subjects.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { shellWord } from '../answer-texts.ts'
import { address, hidden, instant, name } from '../parts.ts'
import { table } from '../sections/table.ts'
import type { ConsoleVisit } from '../visit.ts'

type Item = {
  readonly object: string
  readonly relation: string
  readonly expires_at: string | null
  readonly condition?: TupleCondition
}

const pathOf = (organization: string): string => `/v1/organizations/${encodeURIComponent(organization)}/relationships`

export async function delegations(visit: ConsoleVisit, user: string): Promise<Html> {
  const { organization: org } = visit
  if (org === null || !visit.may('relationships:read')) return EMPTY
  const query = new URLSearchParams({ relation: ACTS_FOR, subject: `user:${user}`, page_size: '100' })
  const { items } = await visit.api<{ readonly items: readonly Item[] }>('GET', `${pathOf(org)}?${query}`)
  const rows = items
    .filter(isDelegation)
    .map((item) => [
      name(clientOf(item)),
      item.expires_at === null ? html`<span class="note">for ever</span>` : instant(Date.parse(item.expires_at)),
      item.condition === undefined ? html`all` : name(scopesOf(item.condition)?.join(' ') ?? ''),
      visit.may('relationships:write')
        ? html`<form method="post" action="${address('people', { org, user })}" class="inline">${hidden('csrf', visit.csrf)}${hidden('delegation', clientOf(item))}<button type="submit" class="plain">End<span class="for-readers"> ${clientOf(item)}</span></button></form>`
        : EMPTY,
    ])
  return table(visit, {
    id: 'delegations',
    caption: html`Clients that act for this person in ${name(org)}`,
    columns: ['Client', 'Until', 'Scopes', 'Do'],
    rows,
    empty: html`<p>No client acts for this person here.</p><pre tabindex="0"><code>portcullis delegation grant CLIENT ${shellWord(user)} -o ${shellWord(org)}</code></pre>`,
  })
}

/** Ends a delegation; if it has ended already, nothing is left to do. */
export async function endDelegation({ organization, api }: ConsoleVisit, user: string, client: string): Promise<void> {
  const tuple = { object: delegationTo(client), relation: ACTS_FOR, subject: `user:${user}` }
  await api('POST', pathOf(organization ?? ''), { delete: [tuple] })
}
