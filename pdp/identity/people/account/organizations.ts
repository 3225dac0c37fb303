/** The organizations of a person on the account's first page: tier, status, and the roles that were given to the person there. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import { fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { accessLink } from './access.ts'
import type { AccountParts } from './deps.ts'
import type { Person } from './visit.ts'

const LISTED_MAX = 100
const ORGANIZATIONS = `
  select m.organization_id as id, o.name, m.role as tier, m.status,
    array(select concat_ws('/', g.app, g.role) from role_grant g
      where g.organization_id = m.organization_id and g.subject = $2 order by 1 limit ${LISTED_MAX}) as roles
  from membership m join organization o using (organization_id)
  where m.user_id = $1 order by o.name, m.organization_id limit ${LISTED_MAX}`

type Row = {
  readonly id: string
  readonly name: string
  readonly tier: Membership['role']
  readonly status: Membership['status']
  readonly roles: readonly string[]
}

export async function organizationsOf({ sql }: AccountParts, frame: Frame, { user }: Person): Promise<Html> {
  const { words } = frame
  const texts = words.account.organizations
  const found = await sql.query<Row>(ORGANIZATIONS, [user.id, `user:${user.id}`])
  const rows = found.map(({ id, name, tier, status, roles }) => {
    const state = status === 'active' ? '' : `, ${texts[status]}`
    const given = roles.length === 0 ? '' : ` ${fillText(texts.roles, { roles: roles.join(', ') })}`
    const access = status === 'active' ? html`<br>${accessLink(frame, { id, name })}` : EMPTY
    return html`<p><strong><bdi>${name}</bdi></strong> (${id})<br><small>${words.joining.tiers[tier]}${state}.${given}</small>${access}</p>`
  })
  return html`<h2>${texts.title}</h2>${rows.length === 0 ? html`<p>${texts.none}</p>` : rows}`
}
