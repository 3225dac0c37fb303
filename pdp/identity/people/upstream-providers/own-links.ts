/** The page of a person's connections: services with which they sign in, to connect and to disconnect. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill, fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import { PATHS } from '../../oauth/paths.ts'
import { signedOutPage } from '../account/own-sign-in.ts'
import { accountLink, alertOf, donePage, hidden, shown } from '../account/page-parts.ts'
import type { AccountVisit, Change, Person } from '../account/visit.ts'
import { digestOf } from '../mail/mailed-tokens.ts'
import { contextOf } from '../passwords/new-password.ts'
import type { UpstreamPerson } from './client.ts'
import type { UpstreamParts } from './deps.ts'
import type { Link } from './links.ts'
import { nameOf, problemPage, providerButtons } from './pages.ts'

export async function showLinks(parts: UpstreamParts, { frame }: AccountVisit, person: Person): Promise<View> {
  const { links, providers, account } = parts
  const [linked, all, memberships] = await Promise.all([
    links.of(person.user.id),
    providers.list(),
    account.directory.activeMemberships(person.user.id),
  ])
  const { upstream } = frame.words
  const own = new Set(memberships.map(({ organization }) => organization.id))
  const offered = all.filter(
    ({ issuer, organizations }) =>
      !linked.some((link) => link.issuer === issuer) &&
      (organizations === undefined || organizations.some((organization) => own.has(organization))),
  )
  const names = new Map(all.map(({ issuer, name }) => [issuer, name]))
  const rows = linked.map((link) => row(frame, person, { link, name: names.get(link.issuer) ?? link.issuer }))
  const fields = { xsrf: person.xsrf, action: 'connect' }
  return shown(
    frame,
    upstream.title,
    html`<p>${upstream.lead}</p>${rows.length === 0 ? html`<p>${upstream.none}</p>` : rows}
${providerButtons(frame, offered, fields, (words) => words.upstream.connect)}${accountLink(frame, frame.words.upstream.back)}`,
  )
}

function row(frame: Frame, { xsrf }: Person, { link, name }: { readonly link: Link; readonly name: string }): Html {
  const { upstream } = frame.words
  const time = new Date(link.linkedAt * 1_000).toISOString().slice(0, 10)
  const known = nameOf(frame, { ...link, name: null })
  const label = fillText(upstream.connected, { provider: name, person: known, time })
  const text = fill(upstream.connected, { provider: strong(name), person: strong(known), time })
  return html`<form method="post" data-step="disconnect">${hidden({ xsrf, identity: keyOf(link) })}
<p>${text}</p><button type="submit" name="action" value="disconnect" class="plain" aria-label="${upstream.disconnect}: ${label}">${upstream.disconnect}</button></form>`
}

export async function disconnect(
  { links, account }: UpstreamParts,
  visit: AccountVisit,
  { person, form }: Change,
): Promise<View> {
  const { user, session } = person
  const of = { user: user.id, by: { session: session.uid } }
  const link = (await links.of(user.id)).find((one) => keyOf(one) === form.get('identity'))
  const outcome = link === undefined ? 'missing' : await links.remove(link, of, contextOf(user.id))
  if (outcome === 'last') return problemPage(visit.frame, 'last')
  const { upstream, account: texts } = visit.frame.words
  if (outcome === 'missing')
    return shown(
      visit.frame,
      upstream.title,
      html`${alertOf(texts.home.gone)}${accountLink(visit.frame, upstream.back)}`,
      'invalid',
    )
  account.log.info({ event: 'foreign_identity_disconnected', user: user.id, issuer: link?.issuer })
  account.notices.send(user.id, 'serviceDisconnected', visit.frame)
  return signedOutPage(visit, { title: upstream.disconnectedTitle, text: upstream.disconnected })
}

export function connectedPage(frame: Frame, provider: string, person: UpstreamPerson): View {
  const { upstream } = frame.words
  const text = fill(upstream.connectedNow, { provider: strong(provider), person: strong(nameOf(frame, person)) })
  return donePage(frame, { title: upstream.connectedTitle, text, back: upstream.back })
}

/** Identifies a link on the page, which must not show the provider's name of the person. */
const keyOf = ({ issuer, subject }: Pick<Link, 'issuer' | 'subject'>): string =>
  digestOf(JSON.stringify([issuer, subject]))

/** A link to this page on the account's first page; empty if there is no provider. */
export const linkToLinks = (frame: Frame, isOffered: boolean): Html =>
  isOffered ? html`<p><a href="${frame.mount}${PATHS.accountProviders}">${frame.words.upstream.title}</a></p>` : EMPTY
