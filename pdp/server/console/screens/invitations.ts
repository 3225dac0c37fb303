/** Invitations: lists those that nobody has answered, invites, and withdraws. The link is only in the mail. */

import { LANGUAGES } from '../../../identity/html/words/words.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { TIERS } from '../../../shared/domain/membership.ts'
import { asRequestProblem, isFault, RequestProblem } from '../../serve/http/status.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, called, field, hidden, instant, link, name, problems, status } from '../parts.ts'
import { knownRoles } from '../sections/known-roles.ts'
import { countOf, table } from '../sections/table.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const PAGE_SIZE = 100
/** How many open invitations are searched for an address before it is invited. */
const SEARCHED_MAX = 1_000
const DONE: { readonly [what: string]: Html } = {
  invited: status('The mail is on its way. Its link is good for seven days, and once.'),
  withdrawn: status('The invitation is withdrawn: its link is no longer good.'),
  gone: alert(
    'This invitation is no longer open: it was answered or withdrawn, or it has expired. Nothing was changed.',
  ),
}

type Invitation = {
  readonly id: string
  readonly email: string
  readonly role: string
  readonly roles: readonly { readonly app: string | null; readonly role: string }[]
  readonly invited_by: string
  readonly expires_at: string
}
type Page = { readonly items: readonly Invitation[]; readonly next_page_token: string | null }
type Filled = { readonly email: string; readonly role: string; readonly roles: string; readonly language: string }

const filledFrom = (given: (name: string) => string): Filled => ({
  email: given('email').trim(),
  role: given('role'),
  roles: [given('one_role'), given('roles')].filter((text) => text.trim() !== '').join('\n'),
  language: given('language'),
})

export async function showInvitations(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('directory:read')
  const done = (Object.hasOwn(DONE, visit.query('done')) && DONE[visit.query('done')]) || EMPTY
  return page(visit, { before: done, filled: filledFrom(visit.query) })
}

async function page(
  visit: ConsoleVisit,
  {
    before,
    filled,
    status: code = 200,
    isAgain = false,
  }: { before: Html; filled: Filled; status?: number; isAgain?: boolean },
): Promise<View> {
  const { organization: org, query } = visit
  const token = query('page')
  const parameters = new URLSearchParams({
    page_size: String(PAGE_SIZE),
    ...(token === '' ? {} : { page_token: token }),
  })
  const { items, next_page_token: next } = await visit.api<Page>('GET', `${pathOf(visit)}?${parameters}`)
  const mayInvite = visit.may('directory:write')
  const total = await countOf(
    visit,
    { id: 'invitations', next, pageSize: PAGE_SIZE },
    async () => (await visit.api<Page>('GET', `${pathOf(visit)}?page_size=${SEARCHED_MAX}`)).items,
  )
  const shown = table(visit, {
    id: 'invitations',
    caption: 'Invitations that nobody has answered yet',
    columns: ['Address', 'Tier and roles', 'Invited by', 'Until', ...(mayInvite ? ['Do'] : [])],
    rows: items.map((one) => [...rowOf(visit, one), ...(mayInvite ? [withdrawal(visit, one)] : [])]),
    next: next === null ? null : address('invitations', { org, page: next }),
    total,
    empty: html`<p>Nobody is invited. An invitation is a mail with a link, by which a person joins with an account or without one yet:</p><pre tabindex="0"><code>portcullis member invite dora@example.com -o ${shellWord(org ?? 'ORGANIZATION')} --role ${TIERS[3]}</code></pre>`,
  })
  return {
    title: 'Invitations',
    status: code,
    body: html`${before}${mayInvite ? freshness(visit, hereWith(visit, filled)) : EMPTY}${shown}
${mayInvite ? await inviteForm(visit, filled, isAgain) : EMPTY}`,
  }
}

const pathOf = ({ organization }: ConsoleVisit): string =>
  `/v1/organizations/${encodeURIComponent(organization ?? '')}/invitations`

const hereWith = ({ organization: org }: ConsoleVisit, filled: Filled): string =>
  address('invitations', { org, ...filled })

function rowOf(
  visit: ConsoleVisit,
  { email, role, roles, invited_by: by, expires_at: until }: Invitation,
): readonly Html[] {
  const { organization: org } = visit
  const inviter = by.startsWith('user:')
    ? link(address('people', { org, user: by.slice('user:'.length) }), name(by))
    : name(by)
  const given = roles.map(({ app, role: key }) => html`, ${name(app === null ? key : `${app}/${key}`)}`)
  return [called(email), html`${role}${given}`, inviter, instant(Date.parse(until))]
}

const withdrawal = ({ organization: org, csrf }: ConsoleVisit, { id, email }: Invitation): Html =>
  html`<form method="post" action="${address('invitations', { org })}" class="inline">${hidden('csrf', csrf)}${hidden('withdraw', id)}
<button type="submit" class="plain">Withdraw<span class="for-readers"> the invitation of ${name(email)}</span></button></form>`

async function inviteForm(
  visit: ConsoleVisit,
  { email, role, roles, language }: Filled,
  isAgain: boolean,
): Promise<Html> {
  const tiers = TIERS.map((tier) => [tier, tier] as const)
  const languages = [...LANGUAGES].map(([tag]) => [tag, tag] as const)
  const known = await knownRoles(visit)
  const one = { name: 'one_role', label: 'Role', value: '', options: [['', 'none'] as const, ...known] }
  const more = {
    name: 'roles',
    label: known.length === 0 ? 'Roles' : 'More roles',
    value: roles,
    lines: 2,
    hint: 'One on each line: APP/ROLE, or ROLE of the organization. Only such as you could grant.',
  }
  const ofRoles = html`${known.length === 0 ? EMPTY : field(one)}${field(more)}`
  return html`<section aria-labelledby="invite"><h2 id="invite">Invite</h2>
<form method="post" action="${address('invitations', { org: visit.organization })}">${hidden('csrf', visit.csrf)}${hidden('again', isAgain ? email : '')}<div class="fields">
${field({ name: 'email', label: 'E-mail address', value: email, required: true })}
${field({ name: 'role', label: 'Tier', value: role || TIERS[3], options: tiers })}
${field({ name: 'language', label: 'Language of the mail', value: language || 'en', options: languages })}
${visit.may('roles:write') ? ofRoles : EMPTY}</div>
<button type="submit">${isAgain ? 'Invite again' : 'Send the invitation'}</button></form></section>`
}

export async function actInvitations(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('directory:write')
  const { organization: org, form } = visit
  const filled = filledFrom(form)
  const stale = mustSignInAgain(visit, hereWith(visit, filled))
  if (stale !== null) return stale
  const withdrawn = form('withdraw')
  try {
    if (withdrawn === '' && form('again') !== filled.email && (await isInvited(visit, filled.email)))
      return page(visit, { before: alert(INVITED_ALREADY), filled, status: 409, isAgain: true })
    if (withdrawn === '') await visit.api('POST', pathOf(visit), bodyOf(filled))
    else await visit.api('DELETE', `${pathOf(visit)}/${encodeURIComponent(withdrawn)}`)
    return { goTo: address('invitations', { org, done: withdrawn === '' ? 'invited' : 'withdrawn' }) }
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (isFault(code)) throw err
    if (withdrawn !== '' && code === 'not_found') return { goTo: address('invitations', { org, done: 'gone' }) }
    return page(visit, { before: problems(message, issues), filled, status: 400 })
  }
}

const INVITED_ALREADY =
  'This address is invited already, so nothing was sent. Inviting it again sends another mail, and the link of the former one is void.'

/** True if the address is invited: another invitation, as by a form that was sent twice, would make the first link invalid. */
async function isInvited(visit: ConsoleVisit, email: string): Promise<boolean> {
  const { items } = await visit.api<Page>('GET', `${pathOf(visit)}?page_size=${SEARCHED_MAX}`)
  return items.some((one) => one.email.toLowerCase() === email.toLowerCase())
}

const bodyOf = ({ email, role, roles, language }: Filled): object => ({
  email,
  role: role || TIERS[3],
  ...(language === '' ? {} : { language }),
  roles: roles.split(/\s+/).flatMap((text) => (text === '' ? [] : [heldRole(text)])),
})

/** The role of a form. Keys of roles have no slash; ids of apps may have some. Throws RequestProblem. */
function heldRole(text: string): { readonly app?: string; readonly role: string } {
  const slash = text.lastIndexOf('/')
  if (slash === 0) throw new RequestProblem('request_invalid', 'a role is APP/ROLE, or ROLE of the organization')
  return slash < 0 ? { role: text } : { app: text.slice(0, slash), role: text.slice(slash + 1) }
}
