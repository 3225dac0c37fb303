/** Choices of roles, and forms that use them. */

import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { TIERS } from '../../../shared/domain/membership.ts'
import { field, hidden } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'
import { daysOf } from './times.ts'

/** Roles of apps; none for people who may not read manifests. */
export async function knownRoles(visit: ConsoleVisit): Promise<readonly (readonly [string, string])[]> {
  if (!visit.mayEverywhere('manifest:read')) return []
  type App = { readonly app: string; readonly roles: { readonly [key: string]: { readonly name: string } } }
  const { items } = await visit.api<{ readonly items: readonly App[] }>('GET', '/v1/apps?page_size=1000')
  return items.flatMap(({ app, roles }) =>
    Object.entries(roles).map(([key, { name: title }]) => [`${app}/${key}`, `${title} (${app})`] as const),
  )
}

/** A form that leads to the preview of a role's grant. `subject` null: the form asks for it. */
export async function giveRoleForm(visit: ConsoleVisit, subject: string | null): Promise<Html> {
  if (visit.organization === null || !visit.may('roles:write')) return EMPTY
  const known = await knownRoles(visit)
  const one = { name: 'role', label: 'Role', value: '', required: true as const }
  const who = { name: 'subject', label: 'Subject', value: '', required: true as const, suggest: 'subject' as const }
  return html`<form method="get" action="/console/change" class="question">${hidden('org', visit.organization)}${hidden('what', 'role')}
${subject === null ? field({ ...who, hint: 'Such as user:alice or group:staff.' }) : hidden('subject', subject)}${field(known.length === 0 ? { ...one, hint: 'APP/ROLE, or ROLE of the organization.' } : { ...one, options: known })}${field({ name: 'until', label: 'Until', value: '', hint: html`Empty: until it is taken away. Such as Friday or 2026-12-04. ${daysOf(visit.reading.zone)}` })}
<button type="submit" class="plain">Give a role …</button></form>`
}

/** A form that leads to the preview of a membership. `user` null: the form asks for the person. */
export function addMemberForm(visit: ConsoleVisit, user: string | null): Html {
  if (visit.organization === null || !visit.may('directory:write')) return EMPTY
  const who = { name: 'user', label: 'Person', value: '', required: true as const, suggest: 'person' as const }
  const tiers = TIERS.map((tier) => [tier, tier] as const)
  return html`<form method="get" action="/console/change" class="question">${hidden('org', visit.organization)}${hidden('what', 'member')}
${user === null ? field(who) : hidden('user', user)}${field({ name: 'tier', label: 'Tier', value: 'member', options: tiers })}
<button type="submit" class="plain">Make a member …</button></form>`
}
