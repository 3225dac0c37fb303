/** Changes: who changed what and when, from the log that decisions follow, and what was true before and after each. */
import type { Change } from '../../domain/change.ts'
import { formatTuple } from '../../domain/names.ts'
import { EMPTY, type Html, html } from '../../process/pages/html.ts'
import { address, field, hidden, link, name, table } from '../parts.ts'
import type { View, Visit } from '../visit.ts'

/** Revisions of a page, and changes of these that are shown. */
const SHOWN = 100
const ROWS_MAX = 60

type Item = {
  readonly revision: number
  readonly change: Change
  readonly actor: string
  readonly request_id: string
  readonly at: string
}
type Page = { readonly items: readonly Item[]; readonly after: number; readonly more: boolean; readonly gap: boolean }

export async function showChanges(visit: Visit): Promise<View> {
  await visit.requireScope('audit:read')
  const { organization: org, query } = visit
  const log = ['environment', 'directory'].find((one) => one === query('log')) ?? ''
  const head = await revisionOf(visit, log)
  const given = /^\d{1,15}$/.test(query('after')) ? Number(query('after')) : null
  const after = Math.max(0, given ?? head - SHOWN)
  const filter = { actor: query('actor').trim(), text: query('text').trim() }
  const path =
    log === ''
      ? `/v1/organizations/${encodeURIComponent(org ?? '')}/changes?after=${after}`
      : `/v1/changes?log=${log}&after=${after}`
  const page = org === null && log === '' ? null : await visit.api<Page>('GET', path)
  const matching = (page?.items ?? []).filter((item) => matches(item, filter))
  const items = matching.slice(0, ROWS_MAX)
  const part = matching.length > ROWS_MAX && matching[ROWS_MAX]?.revision === items.at(-1)?.revision
  const last = items.at(-1)?.revision ?? page?.after ?? after
  const state = { org, log, ...filter }
  const scopes: (readonly [string, string])[] = [['', 'this organization']]
  if (visit.mayEverywhere('audit:read'))
    scopes.push(
      ['environment', 'the environment: tree, models, roles'],
      ['directory', 'the directory: people and clients'],
    )
  return {
    title: 'Changes',
    body: html`<form method="get" action="/console/changes" class="question">${hidden('org', org ?? '')}
${field({ name: 'log', label: 'Log', value: log, options: scopes })}
${field({ name: 'after', label: 'After revision', value: given === null ? '' : String(given), hint: `0 is the beginning; the latest is ${head}.` })}
${field({ name: 'actor', label: 'Actor', value: filter.actor })}
${field({ name: 'text', label: 'Text in the change', value: filter.text })}
<button type="submit">Show</button></form>
${page?.gap === true ? html`<p role="alert">Changes before the first one shown were deleted after their time.</p>` : EMPTY}
${part ? html`<p class="note">Revision ${String(items.at(-1)?.revision)} has more changes than are shown: name an actor or a text to find others.</p>` : EMPTY}
${table({ caption: html`Changes after revision ${String(after)}, newest first`, columns: ['Revision', 'Time (UTC)', 'Actor', 'Change', 'Request'], rows: items.toReversed().map((item, i, all) => rowOf(item, { org, log, isFirst: all[i - 1]?.revision !== item.revision })), empty: html`<p>No change matches. Each write through the API, the command line or this console stands here with its author.</p>` })}
<p class="actions">${after > 0 ? link(address('changes', { ...state, after: String(Math.max(0, after - SHOWN)) }), 'Older') : EMPTY} ${last < head ? link(address('changes', { ...state, after: String(last) }), 'Newer') : EMPTY}</p>`,
  }
}

async function revisionOf(visit: Visit, log: string): Promise<number> {
  const id = log === '' ? (visit.organization ?? '') : `#${log}`
  return (await visit.deps.management.store.vector([id])).logs.get(id)?.revision ?? 0
}

const matches = ({ actor, change }: Item, filter: { readonly actor: string; readonly text: string }): boolean =>
  (filter.actor === '' || actor === filter.actor) && (filter.text === '' || changeText(change).includes(filter.text))

function rowOf(
  item: Item,
  { org, log, isFirst }: { org: string | null; log: string; isFirst: boolean },
): readonly (Html | string)[] {
  const { revision, change, actor, at, request_id } = item
  const here = address('changes', { org, log, after: String(revision - 1) })
  return [
    link(here, String(revision)),
    html`<time datetime="${at}">${at.slice(0, 19).replace('T', ' ')}</time>`,
    name(actor),
    html`${name(changeText(change))}${askLink(change, { org, at })}`,
    isFirst ? html`<span class="id">${name(request_id)}</span>` : EMPTY,
  ]
}

/** The question that the change answers differently before and after. */
function askLink(change: Change, { org, at }: { org: string | null; at: string }): Html {
  if (change.kind !== 'tuple') return EMPTY
  const { object: resource, relation, subject } = change.tuple
  const before = new Date(Date.parse(at) - 1).toISOString()
  return html` <span class="note">${link(address('ask', { org, subject, relation, resource, as_of: before }), 'before')} · ${link(address('ask', { org, subject, relation, resource }), 'now')}</span>`
}

export function changeText(change: Change): string {
  switch (change.kind) {
    case 'tuple':
      return `${change.op === 'write' ? '+' : '−'} ${formatTuple(change.tuple)}`
    case 'membership':
      return change.membership === null
        ? `− membership of user:${change.user}`
        : `membership of user:${change.user}: ${change.membership.role}, ${change.membership.status}`
    case 'role_grant':
      return `${change.op === 'write' ? '+' : '−'} role ${change.grant.app === null ? '' : `${change.grant.app}/`}${change.grant.role} for ${change.grant.subject}`
    case 'entitlement':
      return change.entitlement === null
        ? `− entitlement ${change.key}`
        : `entitlement ${change.key}: ${JSON.stringify(change.entitlement.value)}`
    case 'organization':
      return change.organization === null
        ? `− organization ${change.id}`
        : `organization ${change.id}: ${change.organization.name}${change.organization.parent === null ? '' : `, below ${change.organization.parent}`}`
    case 'manifest':
      return `manifest of app ${change.manifest.app}`
    case 'role':
      return change.role === null ? `− role ${change.key}` : `role ${change.key}: ${change.role.permissions.join(', ')}`
    case 'token':
      return `tokens of ${change.by.replace('_', ' ')} ${change.id} end`
    case 'entitlements':
      return 'entitlements changed at their source'
    case 'clear':
      return 'everything was deleted'
    default:
      return `${change.op === 'write' ? '' : '− '}${change.kind.replace('_', ' ')} ${change.id}`
  }
}
