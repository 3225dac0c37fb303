/** An organization: its place in the tree, its members and their roles with where each comes from, and its entitlements. */
import { ENVIRONMENT } from '../../domain/log.ts'
import { TIERS } from '../../domain/membership.ts'

import { EMPTY, type Html, html } from '../../process/pages/html.ts'
import { parseJson } from '../../serve/http/json.ts'

import { RequestProblem } from '../../serve/problems/status.ts'
import type { LoggedGrant } from '../../store/contract.ts'
import { shellWord } from '../answer-texts.ts'
import { address, hidden, link, name, status, table } from '../parts.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { View, Visit } from '../visit.ts'

const ROWS_MAX = 200

type Organization = { readonly id: string; readonly name: string; readonly parent: string | null }
type Member = { readonly user: string; readonly role: string; readonly status: string }
type Entitlement = {
  readonly key: string
  readonly value: object
  readonly enforcement: string
  readonly version: number
}
type Page<T> = { readonly items: readonly T[] }

export async function showOrganization(visit: Visit): Promise<View> {
  await visit.requireScope('directory:read')
  const { organization: org, query } = visit
  if (org === null) throw new RequestProblem('not_found', 'there is no organization yet')
  const base = `/v1/organizations/${encodeURIComponent(org)}`
  const found = await visit.api<Organization>('GET', base)
  const members = await visit.api<Page<Member>>('GET', `${base}/members?page_size=${ROWS_MAX}`)
  const done = query('done') === '' ? EMPTY : status('Done. Every decision from now on sees it.')
  return {
    title: found.name,
    body: html`${done}${await tree(visit, found)}
${table({ caption: 'Members', columns: ['Person', 'Tier', 'Status', 'Look'], rows: members.items.map(({ user, role, status: state }) => [link(address('people', { org, user }), name(user)), role, state, link(address('what', { org, subject: `user:${user}` }), 'What may they?')]), empty: html`<p>Nobody is a member yet.</p><pre tabindex="0"><code>portcullis member put alice -o ${shellWord(org)} --role ${TIERS[3]}</code></pre>` })}
${visit.may('roles:read') ? await grants(visit, org) : EMPTY}
${visit.may('entitlements:read') ? await entitlements(visit, base) : EMPTY}`,
  }
}

/** Those above, and those directly below that the person may see. */
async function tree(visit: Visit, { id, name: title, parent }: Organization): Promise<Html> {
  const { store, pdp } = visit.deps.management
  const above = ((await pdp.ancestors(id)) ?? []).slice(1).toReversed()
  const all = await store.organizations({ after: null, countMax: 1_000 })
  const below = all.filter((one) => one.parent === id).slice(0, ROWS_MAX)
  const item = (one: string, text: string): Html =>
    html`<li>${link(address('organization', { org: one }), name(text))}</li>`
  return html`<nav aria-label="Organization tree" class="tree"><h2>Tree</h2>
${parent === null ? html`<p class="note">${name(id)} is at the top.</p>` : html`<ol>${above.map((one) => item(one, one))}<li aria-current="page">${name(title)} <span class="note">${name(id)}</span></li></ol>`}
${below.length === 0 ? EMPTY : html`<p>Directly below:</p><ul>${below.map((one) => item(one.id, one.name))}</ul>`}</nav>`
}

/** Here, above and everywhere: what counts in this organization, and from where. */
async function grants(visit: Visit, org: string): Promise<Html> {
  const { store, pdp } = visit.deps.management
  const path = (await pdp.ancestors(org)) ?? []
  const found: LoggedGrant[] = []
  const isSeen = await Promise.all(path.map((log) => visit.mayWithin('roles:read', log)))
  const seen = path.filter((_, i) => isSeen[i] === true)
  const isWhole = visit.mayEverywhere('roles:read')
  for (const log of isWhole ? [...seen, ENVIRONMENT] : seen)
    found.push(...(await store.roleGrants({ log }, { after: null, countMax: ROWS_MAX })))
  const rows = found
    .slice(0, ROWS_MAX)
    .map(({ log, app, role, subject }) => [
      link(
        address('ask', { org, subject: subject.startsWith('group:') ? `${subject}#member` : subject }),
        name(subject),
      ),
      html`${app === null ? EMPTY : html`${name(app)} / `}${name(role)}`,
      log === org ? html`here` : log === ENVIRONMENT ? html`everywhere` : html`${name(log)}, above`,
    ])
  const hidden = isWhole && seen.length === path.length ? '' : '; those granted where you may not look are left out'
  return table({
    caption: `Roles that count here, with where they are granted${hidden}`,
    columns: ['Subject', 'Role', 'Granted'],
    rows,
    empty: html`<p>No role counts here yet.</p><pre tabindex="0"><code>portcullis role grant ROLE user:alice -o ${shellWord(org)} --app APP</code></pre>`,
  })
}

async function entitlements(visit: Visit, base: string): Promise<Html> {
  const { items } = await visit.api<Page<Entitlement>>('GET', `${base}/entitlements?page_size=${ROWS_MAX}`)
  const mayWrite = visit.may('entitlements:write')
  const rows = items.map((item) => [
    name(item.key),
    'enabled' in item.value && Object.keys(item.value).length === 1
      ? html`<span class="${item.value.enabled === true ? 'allowed' : 'denied'}">${item.value.enabled === true ? '✓ on' : '✗ off'}</span>`
      : html`<code>${JSON.stringify(item.value)}</code>`,
    item.enforcement,
    String(item.version),
    mayWrite && 'enabled' in item.value ? toggle(visit, item) : EMPTY,
  ])
  return html`${mayWrite ? freshness(visit, address('organization', { org: visit.organization })) : EMPTY}${table({ caption: 'Entitlements', columns: ['Key', 'Value', 'Enforced by', { title: 'Version', number: true }, 'Do'], rows, empty: html`<p>The organization has no entitlement yet.</p>` })}`
}

function toggle(visit: Visit, { key, value, enforcement }: Entitlement): Html {
  const isOn = 'enabled' in value && value.enabled === true
  return html`<form method="post" action="${address('organization', { org: visit.organization })}" class="inline">${hidden('csrf', visit.csrf)}${hidden('key', key)}${hidden('enforcement', enforcement)}${hidden('value', JSON.stringify({ ...value, enabled: !isOn }))}
<button type="submit" class="plain">${isOn ? 'Turn off' : 'Turn on'}<span class="for-readers"> ${key}</span></button></form>`
}

export async function actOrganization(visit: Visit): Promise<View> {
  const { organization: org, form } = visit
  await visit.requireScope('entitlements:write')
  const stale = mustSignInAgain(visit, address('organization', { org }))
  if (stale !== null) return stale
  const path = `/v1/organizations/${encodeURIComponent(org ?? '')}/entitlements/${encodeURIComponent(form('key'))}`
  await visit.api('PUT', path, { value: parseJson(form('value')), enforcement: form('enforcement') })
  return { goTo: address('organization', { org, done: '1' }) }
}
