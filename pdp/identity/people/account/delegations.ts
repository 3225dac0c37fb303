/** Clients that act for a person: their list, and the page where the person allows one, with some of the scopes that it asks for. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { isId } from '../../../shared/domain/names.ts'
import { DELEGATED_SCOPES_MAX } from '../../../shared/domain/subjects.ts'
import { fill, fillText } from '../../../shared/pages/words.ts'
import { type OfferedChoice, organizationField } from '../../html/consent-page.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import type { OwnDelegation } from '../../issuer/tokens/delegations.ts'
import { PATHS } from '../../oauth/paths.ts'
import { isPlatformScope, splitScope } from '../../oauth/scopes.ts'
import { contextOf } from '../passwords/new-password.ts'
import type { AccountParts } from './deps.ts'
import { accountLink, donePage, hidden, shown, timeOf } from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const DAYS = { day: 1, month: 30, year: 365 } as const
const DAY_MS = 86_400_000
const PARAMETER_CHARACTERS_MAX = 1_024

/** The request in the link of a client, from the query of the page. It is kept while the person signs in. */
export function requestIn(url: string | undefined): URLSearchParams {
  const given = new URLSearchParams(url?.split('?')[1] ?? '')
  const named = ['client_id', 'scope', 'organization'].flatMap((name): [string, string][] => {
    const value = given.get(name)
    return value === null || value.length > PARAMETER_CHARACTERS_MAX ? [] : [[name, value]]
  })
  return new URLSearchParams(named)
}

/** The request of the page; null if the client cannot act for this person, for any reason. */
async function requestOf(
  parts: AccountParts,
  { req }: AccountVisit,
  { user }: Person,
): Promise<{
  readonly client: string
  readonly name: string
  /** The scopes that the client asks for and is registered for. */
  readonly scopes: readonly string[]
  readonly choice: OfferedChoice
} | null> {
  const asked = requestIn(req.url)
  const id = asked.get('client_id') ?? ''
  const client = isId(id) ? await parts.provider().Client.find(id) : undefined
  if (client === undefined || !client.grantTypeAllowed(EXCHANGE)) return null
  const choice = await parts.consent.choose({ accountId: user.id, client, asked: asked.get('organization') })
  if (choice.kind === 'refused' || choice.kind === 'unbound') return null
  const registered = splitScope(client.portcullis_scope).filter((scope) => !isPlatformScope(scope))
  const wanted = asked.get('scope') === null ? registered : splitScope(asked.get('scope') ?? '')
  const scopes = registered.filter((scope) => wanted.includes(scope)).slice(0, DELEGATED_SCOPES_MAX)
  return { client: id, name: client.clientName ?? id, scopes, choice }
}

export async function askToDelegate(parts: AccountParts, visit: AccountVisit, person: Person): Promise<View> {
  const { frame } = visit
  const { delegations: texts } = frame.words.account
  if (!requestIn(visit.req.url).has('client_id')) return shown(frame, texts.title, whichClient(frame))
  const request = await requestOf(parts, visit, person)
  if (request === null) return refusal(frame)
  const { client, name, scopes, choice } = request
  return shown(
    frame,
    texts.title,
    html`<p>${fill(texts.asks, { application: strong(name) })} <small>(${client})</small></p>
<form method="post" data-step="delegation">${hidden({ xsrf: person.xsrf })}
${organizationField(frame.words, choice)}
${scopes.length === 0 ? EMPTY : html`<fieldset><legend>${texts.which}</legend>${scopes.map((scope) => html`<label><input type="checkbox" name="scope" value="${scope}" checked> ${scope}</label>`)}</fieldset>`}
<label for="until">${texts.howLong}</label>
<select id="until" name="until">${Object.keys(DAYS).map((key) => html`<option value="${key}">${texts.periods[key as keyof typeof DAYS]}</option>`)}<option value="open">${texts.periods.open}</option></select>
<button type="submit">${texts.grant}</button></form>
${accountLink(frame, texts.back)}`,
  )
}

/** Asks for the client's name, if no link of a client led here. */
const whichClient = ({ mount, words: { account, common } }: Frame): Html =>
  html`<p>${account.delegations.lead}</p><form method="get"><label for="client">${account.delegations.client}</label>
<input id="client" name="client_id" type="text" autocomplete="off" maxlength="256" required><button type="submit">${common.continue}</button></form>
<p><a href="${mount}${PATHS.account}">${account.delegations.back}</a></p>`

function refusal(frame: Frame): View {
  const { title, unknown, back } = frame.words.account.delegations
  return shown(frame, title, html`<p role="alert">${unknown}</p>${accountLink(frame, back)}`, 'invalid')
}

/** Grants those ticked scopes for which the client had asked; the form can add no others. */
export async function delegate(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  const { frame } = visit
  const { delegations: texts } = frame.words.account
  const request = await requestOf(parts, visit, person)
  if (request === null) return refusal(frame)
  const { client, name, choice } = request
  const chosen = choice.kind === 'bound' ? choice.organization : choiceOf(choice, form.get('organization'))
  const until = form.get('until') ?? ''
  if (chosen === undefined || !(Object.hasOwn(DAYS, until) || until === 'open')) return refusal(frame)
  const days = until === 'open' ? null : DAYS[until as keyof typeof DAYS]
  const ticked = form.getAll('scope')
  const scopes = request.scopes.filter((scope) => ticked.includes(scope))
  const expiresAtMs = days === null ? null : parts.clock() + days * DAY_MS
  const pair = { organization: chosen.id, client, user: person.user.id }
  await parts.delegations.grant(pair, { scopes, expiresAtMs, context: contextOf(person.user.id) })
  parts.log.info({ event: 'delegation_granted', ...pair, scopes: scopes.join(' ') })
  const text = fill(texts.granted, { application: strong(name), organization: strong(chosen.name) })
  return donePage(frame, { title: texts.title, text, back: texts.back })
}

const choiceOf = (choice: OfferedChoice, id: string | null) =>
  choice.kind === 'choose' ? choice.from.find((one) => one.id === id) : undefined

/** Ends a delegation. If it does not exist, it counts as ended. */
export async function endDelegation(parts: AccountParts, { user }: Person, form: URLSearchParams): Promise<boolean> {
  const pair = {
    organization: form.get('organization') ?? '',
    client: form.get('delegation') ?? '',
    user: user.id,
  }
  const own = await parts.delegations.of(user.id)
  if (!own.some(({ client, organization }) => client === pair.client && organization === pair.organization))
    return false
  const ended = await parts.delegations.end(pair, contextOf(user.id))
  if (ended) parts.log.info({ event: 'delegation_ended', ...pair })
  return ended
}

/** A part of the first page of the account. */
export async function delegationsOf(parts: AccountParts, frame: Frame, { user, xsrf }: Person): Promise<Html> {
  const { delegations: texts, home } = frame.words.account
  const rows = (await parts.delegations.of(user.id)).map((one) => {
    const label = fillText(texts.one, { application: one.name, organization: one.organizationName })
    const text = fill(texts.one, { application: strong(one.name), organization: strong(one.organizationName) })
    return html`<form method="post" data-step="delegation">${hidden({ xsrf, delegation: one.client, organization: one.organization })}
<p>${text}<br><small>${detailsOf(texts, one)}</small></p><button type="submit" class="plain" aria-label="${home.end}: ${label}">${home.end}</button></form>`
  })
  return html`<h2>${texts.list}</h2>${rows.length === 0 ? html`<p>${texts.none}</p>` : rows}
<p><a href="${frame.mount}${PATHS.accountDelegations}">${texts.title}</a></p>`
}

function detailsOf(texts: Frame['words']['account']['delegations'], one: OwnDelegation): string {
  const time = (ms: number): { time: string } => ({ time: timeOf(ms / 1_000) })
  return [
    ...(one.sinceMs === null ? [] : [fillText(texts.since, time(one.sinceMs))]),
    one.expiresAtMs === null ? texts.open : fillText(texts.until, time(one.expiresAtMs)),
    one.scopes === null ? texts.everything : fillText(texts.only, { scopes: one.scopes.join(', ') || '–' }),
    one.usedAtMs === null ? texts.unused : fillText(texts.used, time(one.usedAtMs)),
  ].join(' · ')
}
