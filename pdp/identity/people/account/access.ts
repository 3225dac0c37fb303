/** The page of everything that a person can reach in an organization, by type and relation, and of the person's groups there. */
import { type ReachRow, readReach, SHOWN_MAX, type Way } from '../../../engine/reach/reach.ts'
import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import { visible } from '../../../shared/base/invisible.ts'
import { fill, fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import { PATHS } from '../../oauth/paths.ts'
import { requestIn } from './delegations.ts'
import type { AccountParts } from './deps.ts'
import { accountLink, alertOf, shown } from './page-parts.ts'
import type { AccountVisit, Person } from './visit.ts'

/** How often a person opens the page in an hour: it reads many lists. */
const SHOWN_PER_HOUR_MAX = 120

/** An organization whose membership is not active counts as missing. */
export async function showAccess(parts: AccountParts, { req, frame }: AccountVisit, { user }: Person): Promise<View> {
  const texts = frame.words.account.access
  const of = (body: Html, outcome?: 'invalid' | 'tooMany'): View =>
    shown(frame, texts.title, html`${body}${accountLink(frame, frame.words.account.verification.back)}`, outcome)
  const active = (await parts.directory.activeMemberships(user.id)).map(({ organization }) => organization)
  const asked = requestIn(req.url).get('organization')
  const [only, ...more] = active
  if (asked === null && only === undefined) return of(html`<p>${texts.none}</p>`)
  if (asked === null && more.length > 0)
    return of(html`<p>${texts.which}</p>${active.map((one) => html`<p>${accessLink(frame, one, 'name')}</p>`)}`)
  const organization = asked === null ? only : active.find(({ id }) => id === asked)
  if (organization === undefined) return of(alertOf(texts.elsewhere), 'invalid')
  if (!(await parts.attempts.take(`access of ${user.id}`, SHOWN_PER_HOUR_MAX)))
    return of(alertOf(texts.tooMany), 'tooMany')
  const subject = { type: 'user' as const, id: user.id }
  const found = await readReach(parts.pdp, { organization: organization.id, subject })
  const name = html`<strong>${named(organization.name)}</strong> (${organization.id})`
  return of(html`<p>${name}</p>${reachOf(texts, found)}`)
}

/** `as`: whether the link has the name of the page, or of the organization. */
export function accessLink(
  { mount, words }: Frame,
  { id, name }: { readonly id: string; readonly name: string },
  as: 'title' | 'name' = 'title',
): Html {
  const { title } = words.account.access
  const to = `${mount}${PATHS.accountAccess}?${new URLSearchParams({ organization: id })}`
  if (as === 'name') return html`<a href="${to}">${named(name)}</a> <small>(${id})</small>`
  return html`<a href="${to}" aria-label="${title}: ${visible(name)}">${title}</a>`
}

type Texts = Frame['words']['account']['access']
type Pair = Pick<ReachRow, 'type' | 'relation'>
const isGroups = ({ type, relation }: Pair): boolean => type === 'group' && relation === 'member'

function reachOf(texts: Texts, { rows, left }: Awaited<ReturnType<typeof readReach>>): Html {
  // Nothing was found in these, and they were not read to their end.
  const unread = [...left, ...rows.filter(({ items }) => items.length === 0)]
  const known = rows.filter(({ items }) => items.length > 0)
  const groups = known.filter(isGroups)
  const others = known.filter((row) => !isGroups(row))
  const noGroups = unread.some(isGroups) ? EMPTY : html`<p>${texts.noGroups}</p>`
  const nothing = unread.length > 0 ? EMPTY : html`<p>${texts.nothing}</p>`
  const missing = html`<p role="status">${fill(texts.left, { left: joined(unread.map(pairName)) })}</p>`
  return html`${unread.length === 0 ? EMPTY : missing}
<h2>${texts.groups}</h2>${groups.length === 0 ? noGroups : groups.map((row) => rowOf(texts, row))}
<h2>${texts.access}</h2>${others.length === 0 ? nothing : others.map((row) => rowOf(texts, row))}`
}

function rowOf(texts: Texts, row: ReachRow): Html {
  const { items, isAll, ways } = row
  const count = String(items.length)
  const such = joined(items.slice(0, SHOWN_MAX).map(named))
  const by =
    ways.length === 0 ? EMPTY : html`<br>${fill(texts.by, { ways: joined(ways.map((way) => wayName(texts, way))) })}`
  return html`<p><strong>${pairName(row)}</strong>: ${isAll ? count : fillText(texts.atLeast, { count })}<br><small>${such}${items.length > SHOWN_MAX || !isAll ? ' …' : EMPTY}${by}</small></p>`
}

/** Other people's ids are left out. */
const wayName = (texts: Texts, way: Way): Html =>
  typeof way === 'string' || way.object.startsWith('user:')
    ? html`${texts[typeof way === 'string' ? way : 'rule']}`
    : named(way.object)

const pairName = ({ type, relation }: Pair): Html => html`${named(type)} · ${named(relation)}`
/** A name that somebody else chose: invisible characters are shown as code points, and `bdi` keeps its direction from the text around. */
const named = (text: string): Html => html`<bdi>${visible(text)}</bdi>`
