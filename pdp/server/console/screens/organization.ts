/** An organization: its place in the tree, its members and roles with the source of each, and its entitlements. */

import type { JournaledGrant } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import { TIERS } from '../../../shared/domain/membership.ts'
import type { RoleGrant } from '../../../shared/domain/role.ts'
import { RequestProblem } from '../../serve/http/status.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, called, hidden, link, name, status } from '../parts.ts'
import { addMemberForm, giveRoleForm } from '../sections/known-roles.ts'
import { countOf, pageByPage, table } from '../sections/table.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { changeAddress, changeDone } from './change.ts'

/** How many rows a page of each list has. */
const ROWS_MAX = 200

const DONE: { readonly [what: string]: Html } = {
  enabled: status('Done. Every decision from now on sees it.'),
  overtaken: alert(
    'Nothing was written: somebody changed this entitlement after the page was shown. It stands below as it is now.',
  ),
}

type Organization = { readonly id: string; readonly name: string; readonly parent: string | null }
type Member = { readonly user: string; readonly role: string; readonly status: string }
type Entitlement = {
  readonly key: string
  readonly value: object
  readonly enforcement: string
  readonly version: number
}
type Page<T> = { readonly items: readonly T[]; readonly next_page_token: string | null }

export async function showOrganization(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('directory:read')
  const { organization: org, query } = visit
  if (org === null) throw new RequestProblem('not_found', 'there is no organization yet')
  const base = `/v1/organizations/${encodeURIComponent(org)}`
  const found = await visit.api<Organization>('GET', base)
  const members = await visit.api<Page<Member>>('GET', `${base}/members?${pageAt(query('members'))}`)
  const total = await countOf(visit, { id: 'members', next: members.next_page_token, pageSize: ROWS_MAX }, (from) =>
    visit.deps.management.store.members(org, from),
  )
  const done = (Object.hasOwn(DONE, query('done')) && DONE[query('done')]) || (await changeDone(visit))
  return {
    title: found.name,
    body: html`${done}${await tree(visit, found)}
${table(visit, { id: 'members', caption: 'Members', columns: ['Person', 'Tier', 'Status', 'Do'], rows: members.items.map(({ user, role, status: state }) => [link(address('people', { org, user }), name(user)), role, state, link(address('what', { org, subject: `user:${user}` }), 'What can they reach?')]), total, next: nextOf(visit, 'members', members.next_page_token), empty: html`<p>Nobody is a member yet.</p><pre tabindex="0"><code>portcullis member put alice -o ${shellWord(org)} --role ${TIERS[3]}</code></pre>` })}${addMemberForm(visit, null)}
${visit.may('roles:read') ? await grants(visit, org) : EMPTY}
${visit.may('entitlements:read') ? await entitlements(visit, base) : EMPTY}`,
  }
}

const pageAt = (token: string): string =>
  new URLSearchParams({ page_size: String(ROWS_MAX), ...(token === '' ? {} : { page_token: token }) }).toString()

/** The URL of the next page of one list; the other lists then show their first page. */
const nextOf = ({ organization: org }: ConsoleVisit, list: string, token: string | null): string | null =>
  token === null ? null : address('organization', { org, [list]: token })

/** Organizations above as a path and those below as a tree; if there are too many, only those directly below, page by page. */
async function tree(visit: ConsoleVisit, { id, name: title, parent }: Organization): Promise<Html> {
  const { pdp, store } = visit.deps.management
  const above = ((await pdp.ancestors(id)) ?? []).slice(1).toReversed()
  const item = (one: string, text: Html): Html => link(address('organization', { org: one }), text)
  const steps = above.map((one) => html`<li>${item(one, name(one))}</li>`)
  const path = html`<nav aria-label="Path"><ol class="path">${steps}<li aria-current="page">${called(title)} <span class="note">${name(id)}</span></li></ol></nav>`
  const within = await store.organizations({ within: id }, { after: null, countMax: ROWS_MAX + 1 })
  const isWhole = within.length <= ROWS_MAX
  const page = { after: visit.query('below') || null, countMax: ROWS_MAX + 1 }
  const found = isWhole ? within : await store.organizations({ parent: id }, page)
  const byParent = Map.groupBy(found.slice(0, ROWS_MAX), (one) => one.parent)
  const branch = (of: string): Html => {
    const children = (byParent.get(of) ?? []).map(
      (one) => html`<li>${item(one.id, called(one.name))}${branch(one.id)}</li>`,
    )
    return children.length === 0 ? EMPTY : html`<ul>${children}</ul>`
  }
  const last = !isWhole && found.length > ROWS_MAX ? found[ROWS_MAX - 1] : undefined
  const more = nextOf(visit, 'below', last?.id ?? null)
  const below = branch(id)
  return html`${parent === null ? EMPTY : path}${below === EMPTY ? EMPTY : html`<nav aria-label="Organization tree" class="tree"><h2>Below</h2>${below}${more === null ? EMPTY : html`<p>${link(more, 'Next page')}</p>`}</nav>`}`
}

/** The logs whose grants count in the organization and that the person may read. `isWhole`: these are all of them. */
export async function grantJournals(
  visit: ConsoleVisit,
  org: string,
): Promise<{ readonly logs: readonly JournalId[]; readonly isWhole: boolean }> {
  const path = (await visit.deps.management.pdp.ancestors(org)) ?? []
  const isSeen = await Promise.all(path.map((log) => visit.mayWithin('roles:read', log)))
  const seen = path.filter((_, i) => isSeen[i] === true)
  if (!visit.mayEverywhere('roles:read')) return { logs: seen, isWhole: false }
  return { logs: [...seen, ENVIRONMENT], isWhole: seen.length === path.length }
}

/** The end of a caption. */
export const LEFT_OUT = '; those granted where you may not look are left out'

/** A link to the preview that takes the role away, if the grant belongs to the organization in view or to the whole environment. */
export function takeAway(visit: ConsoleVisit, log: JournalId, { id, app, role, subject }: RoleGrant): Html {
  const { organization: org } = visit
  const may = log === ENVIRONMENT ? visit.mayEverywhere('roles:write') : log === org && visit.may('roles:write')
  const change = { kind: 'role_grant', op: 'delete', grant: { id, app, role, subject } } as const
  return may ? link(changeAddress(org, { log, change }), 'Take away …') : EMPTY
}

/** Grants that count in this organization: its own, those of organizations above, and environment-wide ones. */
async function grants(visit: ConsoleVisit, org: string): Promise<Html> {
  const { store } = visit.deps.management
  const { logs, isWhole } = await grantJournals(visit, org)
  const found: JournaledGrant[] = []
  const [begun = '', id = ''] = visit.query('roles').split(' ')
  const first = Math.max(0, logs.indexOf(begun))
  for (const log of logs.slice(first)) {
    const after = log === begun && id !== '' ? { log, id } : null
    found.push(...(await store.roleGrants({ log }, { after, countMax: ROWS_MAX + 1 - found.length })))
    if (found.length > ROWS_MAX) break
  }
  const last = found.length > ROWS_MAX ? found[ROWS_MAX - 1] : undefined
  const rows = found.slice(0, ROWS_MAX).map(({ log, ...grant }) => [
    link(
      address('ask', {
        org,
        subject: grant.subject.startsWith('group:') ? `${grant.subject}#member` : grant.subject,
      }),
      name(grant.subject),
    ),
    html`${grant.app === null ? EMPTY : html`${name(grant.app)} / `}${name(grant.role)}`,
    log === org ? html`here` : log === ENVIRONMENT ? html`everywhere` : html`${name(log)}, above`,
    takeAway(visit, log, grant),
  ])
  const next = last === undefined ? null : `${last.log} ${last.id}`
  const total = await countOf(visit, { id: 'roles', next, pageSize: ROWS_MAX }, async (page) =>
    (await Promise.all(logs.map((log) => store.roleGrants({ log }, page)))).flat(),
  )
  const shown = table(visit, {
    id: 'roles',
    caption: `Roles that count here, with where they are granted${isWhole ? '' : LEFT_OUT}`,
    columns: ['Subject', 'Role', 'Granted', 'Do'],
    rows,
    next: nextOf(visit, 'roles', next),
    total,
    empty: html`<p>No role counts here yet${isWhole ? '' : LEFT_OUT}.</p><pre tabindex="0"><code>portcullis role grant ROLE user:alice -o ${shellWord(org)} --app APP</code></pre>`,
  })
  return html`${shown}${await giveRoleForm(visit, null)}`
}

async function entitlements(visit: ConsoleVisit, base: string): Promise<Html> {
  const path = `${base}/entitlements?${pageAt(visit.query('entitlements'))}`
  const { items, next_page_token: token } = await visit.api<Page<Entitlement>>('GET', path)
  const mayWrite = visit.may('entitlements:write')
  const total = await countOf(
    visit,
    { id: 'entitlements', next: token, pageSize: ROWS_MAX },
    pageByPage(async (from: string | null) => {
      const page = await visit.api<Page<Entitlement>>('GET', `${base}/entitlements?${pageAt(from ?? '')}`)
      return { items: page.items, next: page.next_page_token }
    }),
  )
  const rows = items.map((item) => [
    name(item.key),
    'enabled' in item.value && Object.keys(item.value).length === 1
      ? html`<span class="${item.value.enabled === true ? 'allowed' : 'denied'}">${item.value.enabled === true ? '✓ on' : '✗ off'}</span>`
      : name(JSON.stringify(item.value)),
    item.enforcement,
    String(item.version),
    mayWrite && 'enabled' in item.value ? toggle(visit, item) : EMPTY,
  ])
  return html`${mayWrite ? freshness(visit, address('organization', { org: visit.organization })) : EMPTY}${table(visit, { id: 'entitlements', caption: 'Entitlements', columns: ['Key', 'Value', 'Enforced by', { title: 'Version', number: true }, 'Do'], rows, total, next: nextOf(visit, 'entitlements', token), empty: html`<p>The organization has no entitlement yet.</p>` })}`
}

function toggle(visit: ConsoleVisit, { key, value, version }: Entitlement): Html {
  const isOn = 'enabled' in value && value.enabled === true
  return html`<form method="post" action="${address('organization', { org: visit.organization })}" class="inline">${hidden('csrf', visit.csrf)}${hidden('key', key)}${hidden('enabled', String(!isOn))}${hidden('version', String(version))}
<button type="submit" class="plain">${isOn ? 'Turn off' : 'Turn on'}<span class="for-readers"> ${key}</span></button></form>`
}

export async function actOrganization(visit: ConsoleVisit): Promise<View> {
  const { organization: org, form } = visit
  await visit.requireScope('entitlements:write')
  const stale = mustSignInAgain(visit, address('organization', { org }))
  if (stale !== null) return stale
  const path = `/v1/organizations/${encodeURIComponent(org ?? '')}/entitlements/${encodeURIComponent(form('key'))}`
  const enabled = form('enabled') === 'true'
  let isOvertaken = false
  await visit.change<Entitlement>(path, ({ value, enforcement, version }) => {
    const isSeen = ['', String(version)].includes(form('version'))
    // A form that was sent twice has already written its change.
    isOvertaken = !isSeen && !('enabled' in value && value.enabled === enabled)
    return isSeen ? { value: { ...value, enabled }, enforcement } : null
  })
  return { goTo: address('organization', { org, done: isOvertaken ? 'overtaken' : 'enabled' }) }
}
