/** Invitations to an organization: a mail with a link that works once, within seven days. */
import { randomUUID } from 'node:crypto'
import type { HeldRole } from '../../../engine/store/contract.ts'
import type { Queries } from '../../../engine/store/directory.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { Tier } from '../../../shared/domain/membership.ts'
import { type InvitationChange, invitationChanged } from '../../../shared/domain/outbox/events.ts'
import { LANGUAGES } from '../../html/words/words.ts'
import type { AppendEvents, AppendJournal } from '../../issuer/append.ts'
import { createSharedAttempts, type SharedAttempts } from '../../limits/shared-attempts.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import type { Deliveries } from '../mail/deliveries.ts'
import { isMailAddress, linkMail, type Mailer, mailboxOf } from '../mail/mail.ts'
import { digestOf, KEPT_SECONDS, newToken } from '../mail/mailed-tokens.ts'

export type Invitation = {
  readonly id: string
  readonly organization: string
  readonly email: string
  readonly role: Tier
  readonly roles: readonly HeldRole[]
  /** The sender, in the form that the journal uses. */
  readonly by: string
  /** The expiry in ISO 8601. */
  readonly expiresAt: string
}
/** Call the methods that write in a transaction that holds the lock of the organization. */
export type Invitations = {
  /**
   * Makes an invitation; the link of an earlier one to the same address becomes invalid. `deliver` sends the mail: call it after
   * the transaction. Throws PdpError `conflict` when this server sends no mail, `overloaded` after too many mails,
   * `request_invalid` for an address that mail cannot reach.
   */
  invite(
    invited: Pick<Invitation, 'organization' | 'email' | 'role' | 'roles'> & {
      readonly organizationName: string
      /** The language of the mail; if we lack it, English. */
      readonly language: string
    },
    context: WriteContext,
  ): Promise<Invitation & { deliver(): void }>
  /** Invitations after `after` (exclusive), ordered by id. */
  list(
    organization: string,
    page: { readonly after: string | null; readonly countMax: number },
  ): Promise<readonly Invitation[]>
  /** Withdraws an invitation; false: there was none. */
  withdraw(organization: string, id: string, context: WriteContext): Promise<boolean>
  /** Reads an invitation without using it; null: its link is no longer valid. */
  find(token: string): Promise<Invitation | null>
  /** Uses the invitation up. Of several requests at the same time, one gets it. */
  take(
    token: string,
    by: { readonly change: 'accepted' | 'declined'; readonly user: string | null },
  ): Promise<Invitation | null>
}

const WINDOW_MS = 3_600_000
/** Mails in an hour: of one organization; of one organization to one address; of all organizations to one mailbox. */
const ORGANIZATION_MAILS_MAX = 200
const ADDRESS_MAILS_MAX = 3
const MAILBOX_MAILS_MAX = 10
/** How many open invitations one organization may have. */
const OPEN_MAX = 1_000
const COLUMNS = `invitation_id as id, organization_id as organization, email, role, coalesce(roles, '[]') as roles, invited_by as by,
  to_char(expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "expiresAt"`
const OPEN = `kind = 'invitation' and expires_at > to_timestamp($1::float8)`

const INVITE = `
  insert into mailed_token
    (digest, kind, email, invitation_id, organization_id, role, roles, invited_by, created_at, expires_at)
  values ($1, 'invitation', $2, $3, $4, $5, $6::jsonb, $7, to_timestamp($8::float8), to_timestamp($9::float8))
  on conflict (organization_id, lower(email)) where kind = 'invitation' do update set
    digest = excluded.digest, email = excluded.email, role = excluded.role, roles = excluded.roles,
    invited_by = excluded.invited_by, created_at = excluded.created_at, expires_at = excluded.expires_at
  returning ${COLUMNS}`

const LIST = `
  select ${COLUMNS} from mailed_token where ${OPEN} and organization_id = $2 and invitation_id > $3
  order by invitation_id limit $4`
const FIND = `select ${COLUMNS} from mailed_token where ${OPEN} and digest = $2`
const TAKE = `delete from mailed_token where ${OPEN} and digest = $2 returning ${COLUMNS}`

export function createInvitations(deps: {
  readonly issuer: string
  readonly sql: Queries
  readonly mailer: Mailer | null
  readonly deliveries: Pick<Deliveries, 'later'>
  readonly appendJournal: AppendJournal
  readonly appendEvents: AppendEvents
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}): Invitations {
  const { issuer, sql, mailer, deliveries, appendJournal, appendEvents, clock } = deps
  const attempts = createSharedAttempts({ sql, clock, windowMs: WINDOW_MS })
  const now = (): number => clock() / 1_000

  async function record(
    { organization, id }: Pick<Invitation, 'organization' | 'id'>,
    changed: { readonly change: InvitationChange; readonly user: string | null },
    context: WriteContext,
  ): Promise<void> {
    const op = changed.change === 'created' ? 'write' : 'delete'
    await appendJournal(sql, organization, [{ kind: 'invitation', id, op }], context)
    await appendEvents(sql, [invitationChanged({ organization, id, ...changed })])
  }

  return {
    async invite({ organizationName, language, ...invited }, context) {
      const { organization, email, role, roles } = invited
      if (mailer === null) throw new PdpError('conflict', 'this server sends no mail: set PORTCULLIS_SMTP_URL')
      if (!isMailAddress(email)) throw new PdpError('request_invalid', 'mail cannot be sent to this address')
      await requireFewOpen(sql, organization, now())
      await requireFewMails(attempts, organization, email)
      const token = newToken()
      const [stored] = await sql.query<Invitation>(INVITE, [
        ...[digestOf(token), email, randomUUID(), organization, role, JSON.stringify(roles), context.actor],
        ...[now(), now() + KEPT_SECONDS.invitation],
      ])
      if (stored === undefined) throw new TypeError('the invitation was not stored')
      await record(stored, { change: 'created', user: null }, context)
      const link = `${urlOf(issuer, PATHS.accountInvitation)}?token=${token}`
      const mail = linkMail(textsIn(language), link, { organization: plainName(organizationName) })
      return { ...stored, deliver: () => deliveries.later(() => mailer.send({ to: email, ...mail })) }
    },
    list: (organization, { after, countMax }) =>
      sql.query<Invitation>(LIST, [now(), organization, after ?? '', countMax]),
    async withdraw(organization, id, context) {
      const gone = await sql.query(
        `delete from mailed_token where ${OPEN} and organization_id = $2 and invitation_id = $3 returning 1`,
        [now(), organization, id],
      )
      if (gone.length > 0) await record({ organization, id }, { change: 'withdrawn', user: null }, context)
      return gone.length > 0
    },
    async find(token) {
      const [row] = await sql.query<Invitation>(FIND, [now(), digestOf(token)])
      return row ?? null
    },
    async take(token, by) {
      const [row] = await sql.query<Invitation>(TAKE, [now(), digestOf(token)])
      if (row === undefined) return null
      const actor = by.user === null ? 'identity' : `user:${by.user}`
      await record(row, by, { actor, requestId: '' })
      return row
    },
  }
}

async function requireFewOpen(sql: Queries, organization: string, nowSeconds: number): Promise<void> {
  const [{ count } = { count: 0 }] = await sql.query<{ count: number }>(
    `select count(*)::int as count from mailed_token where ${OPEN} and organization_id = $2`,
    [nowSeconds, organization],
  )
  if (count >= OPEN_MAX) throw new PdpError('conflict', `there are ${OPEN_MAX} open invitations; withdraw some first`)
}

async function requireFewMails(attempts: SharedAttempts, organization: string, email: string): Promise<void> {
  for (const [key, max] of [
    [`invitations of ${organization}`, ORGANIZATION_MAILS_MAX],
    [`invitations to ${email.toLowerCase()} of ${organization}`, ADDRESS_MAILS_MAX],
    // Counted by mailbox: different spellings of an address must not add up to more mails.
    [`invitations to mailbox ${mailboxOf(email)}`, MAILBOX_MAILS_MAX],
  ] as const)
    if (!(await attempts.take(key, max)))
      throw new PdpError('overloaded', 'there were too many invitations; try again in an hour')
}

function textsIn(language: string) {
  const words = LANGUAGES.get(language) ?? LANGUAGES.get('en')
  if (words === undefined) throw new TypeError('there are no texts')
  return words.joining.mail
}

const NAME_CHARACTERS_MAX = 64
/** The name without links for mail programs, since a user chose it. */
const plainName = (name: string): string =>
  name
    .replaceAll(/[^\p{L}\p{M}\p{N} &'’,()+-]+/gu, ' ')
    .replaceAll(/ +/g, ' ')
    .trim()
    .slice(0, NAME_CHARACTERS_MAX)
