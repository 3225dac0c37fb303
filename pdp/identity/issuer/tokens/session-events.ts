/** Events of browser sessions for receivers that asked for them (CAEP 1.0 sections 3.4 and 3.7). */
import type { Queries } from '../../../engine/store/directory.ts'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import type { AppendEvents, IdentityEvent } from '../append.ts'

type Session = { readonly uid: string; readonly accountId?: string | undefined; readonly acr?: string | undefined }
type SignedIn = {
  readonly accountId: string
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
}
export type SessionEvents = {
  /** Notes a sign-in, perhaps a repeated one, before the session is changed and stored. */
  note(session: Session, signedIn: SignedIn): void
  /** The event that was noted for the session. A second call returns null. */
  take(uid: string | null): IdentityEvent | null
  /** Stores the event in the transaction that stores the session, if a receiver requested such events. */
  append(sql: Queries, event: IdentityEvent): Promise<void>
}

/** Values of acr, the weakest first. */
const LEVELS = ['pwd', 'mfa']
/** The most events that wait for their session to be stored: some sessions never are, because something failed. */
const NOTED_MAX = 1_000
/** Finds a receiver that requested the event; `$1` is the last part of the event's URI. */
const WANTED = `
  select 1 from signal_stream where status <> 'disabled' and exists (
    select 1 from unnest(events_requested) uri where uri like '%/caep/event-type/' || $1) limit 1`
const NAMES = { 'session.established': 'session-established', 'assurance.changed': 'assurance-level-change' } as const

export function createSessionEvents(appendEvents: AppendEvents): SessionEvents {
  const noted = new BoundedMap<string, IdentityEvent>(NOTED_MAX)
  return {
    note(session, signedIn) {
      const event = eventOf(session, signedIn)
      if (event !== null) noted.set(session.uid, event)
    },
    take(uid) {
      const event = uid === null ? undefined : noted.get(uid)
      if (uid !== null) noted.delete(uid)
      return event ?? null
    },
    async append(sql, event) {
      const name = Object.entries(NAMES).find(([type]) => type === event.type)?.[1]
      const wanted = await sql.query(WANTED, [name])
      if (wanted.length > 0) await appendEvents(sql, [event])
    },
  }
}

/** The event of a sign-in; null when the same person signs in with the same strength as before. */
function eventOf({ uid, accountId, acr: previous }: Session, signedIn: SignedIn): IdentityEvent | null {
  const { accountId: user, acr: current } = signedIn
  const common = { user, session: uid, initiating_entity: 'user' }
  const about = { organization: null, tenantsOf: user }
  if (accountId !== user) {
    const how = { ...(current !== undefined && { acr: current }), ...(signedIn.amr && { amr: [...signedIn.amr] }) }
    return { type: 'session.established', ...about, data: { ...common, ...how } }
  }
  if (current === undefined || previous === undefined || current === previous) return null
  const direction = LEVELS.indexOf(current) > LEVELS.indexOf(previous) ? 'increase' : 'decrease'
  return { type: 'assurance.changed', ...about, data: { ...common, current, previous, direction } }
}
