/** Takes in security event tokens (SETs): stores their effects and ids in one transaction before they are acknowledged. */
import { hash } from 'node:crypto'
import { appendArrivals } from '../../engine/store/arrivals.ts'
import type { Sql } from '../../engine/store/directory.ts'
import type { Change } from '../../shared/domain/change.ts'
import { TOKENS } from '../../shared/domain/journal.ts'
import type { Log } from '../../shared/process/log.ts'
import { TokenError } from '../../shared/token/errors.ts'
import type { KeySource } from '../../shared/token/keys.ts'
import { SetError } from '../set/errors.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import type { SetClaims } from '../set/set.ts'
import { ACTED_ON, effectsOf } from './effects.ts'
import type { EntryBudget } from './entry-budget.ts'
import { noteHeard, noteStatus, type ReceivedStream, type StreamState, settingsOf } from './streams.ts'
import type { VerificationStates } from './verification-state.ts'
import { verifySet } from './verify-set.ts'

/** `ended`: tokens were revoked. `all_ended`: all of the issuer, beyond its budget. `ignored`: the type has no effect. `unmatched`: no token
 * of the issuer can name the subject. */
export const OUTCOMES = [
  'ended',
  'all_ended',
  'ignored',
  'unmatched',
  'control',
  'repeated',
  'refused',
  'deferred',
] as const
export type IntakeOutcome = (typeof OUTCOMES)[number]

export type Intake = {
  /** Resolves when the SET may be acknowledged. Throws SetError when it is refused; after any other error it must be sent again. */
  take(stream: ReceivedStream, text: string): Promise<void>
}

type Control = { readonly kind: 'verification' } | ({ readonly kind: 'status' } & Pick<StreamState, 'status'>)
type Taken = { readonly outcome: IntakeOutcome; readonly changes: readonly Change[]; readonly control: Control | null }

export function createIntake(deps: {
  readonly sql: Sql
  readonly keysOf: (stream: ReceivedStream) => KeySource
  readonly states: VerificationStates
  readonly budget: EntryBudget
  readonly clock: () => number
  readonly log: Log
  readonly onOutcome: (issuer: string, outcome: IntakeOutcome) => void
}): Intake {
  const { sql, clock, log } = deps

  async function verified(stream: ReceivedStream, text: string): Promise<SetClaims> {
    // A stream that was made with another transmitter or other settings is no longer trusted.
    if (stream.stream === null || stream.madeBy !== settingsOf(stream))
      throw new TokenError('keys_unavailable', 'the stream is not made yet')
    const { iss, aud } = stream.stream
    const expected = { iss, aud, keys: deps.keysOf(stream), algorithms: stream.algorithms }
    return verifySet(text, expected, clock())
  }

  function store(stream: ReceivedStream, claims: SetClaims, taken: Taken): Promise<IntakeOutcome> {
    const { issuer } = stream
    // Set only once, because the transaction may run again and the changes must not be counted twice.
    let counted: readonly Change[] | null = null
    return sql.transaction(async (tx) => {
      // A repeated SET, too, is acknowledged only after the entries of the first one have revisions.
      tx.arrived(TOKENS)
      const seen = await tx.query(
        'insert into received_set (issuer, jti) values ($1, $2) on conflict do nothing returning 1',
        [issuer, hash('sha256', claims.jti, 'base64url')],
      )
      if (seen.length === 0) return 'repeated'
      const context = { actor: `issuer:${issuer}`, requestId: claims.jti }
      const changes = counted ?? deps.budget.within(issuer, taken.changes, clock())
      counted = changes
      if (changes.length > 0) await appendArrivals(tx, TOKENS, changes, context)
      if (taken.control?.kind === 'verification') await noteHeard(tx, issuer)
      if (taken.control?.kind === 'status') await noteStatus(tx, issuer, taken.control.status)
      // At most one update per second: all SETs of the issuer would else wait at this row.
      await tx.query(
        `update received_stream set received_at = now()
         where issuer = $1 and coalesce(received_at, 'epoch') < now() - interval '1 second'`,
        [issuer],
      )
      return changes === taken.changes ? taken.outcome : 'all_ended'
    })
  }

  return {
    async take(stream, text) {
      const { issuer } = stream
      try {
        const claims = await verified(stream, text)
        const taken = meaningOf(claims, { stream, states: deps.states, nowMs: clock() })
        const outcome = await store(stream, claims, taken)
        deps.onOutcome(issuer, outcome)
        log.info({ event: 'signal_received', issuer, jti: claims.jti, type: claims.event.type, outcome })
      } catch (err) {
        const outcome = err instanceof SetError ? 'refused' : 'deferred'
        deps.onOutcome(issuer, outcome)
        log.warn({ event: `signal_${outcome}`, issuer, err })
        throw err
      }
    },
  }
}

/** Throws SetError `invalid_request` and `invalid_state` for an event about another stream. */
type Context = { readonly stream: ReceivedStream; readonly states: VerificationStates; readonly nowMs: number }

function meaningOf(claims: SetClaims, { stream, states, nowMs }: Context): Taken {
  const { type, members } = claims.event
  if (type === STREAM_EVENTS.verification || type === STREAM_EVENTS.streamUpdated) {
    requireOwnStream(claims, stream)
    const { state, status } = members
    if (type === STREAM_EVENTS.streamUpdated) return { outcome: 'control', changes: [], control: statusOf(status) }
    // An event without a state was not requested (SSF 1.0 section 8.1.4), but shows that the transmitter lives.
    if (state !== undefined && !(typeof state === 'string' && states.isOurs(stream.receiverId, state)))
      throw new SetError('invalid_state', 'state is not one that was asked for')
    return { outcome: 'control', changes: [], control: { kind: 'verification' } }
  }
  const wanted = stream.ssf.events ?? ACTED_ON
  const changes = wanted.includes(type) ? effectsOf(claims, { issuer: stream.issuer, nowMs }) : null
  if (changes === null) return { outcome: 'ignored', changes: [], control: null }
  return { outcome: changes.length === 0 ? 'unmatched' : 'ended', changes, control: null }
}

/** The subject of an event about a stream must be our stream (SSF 1.0 sections 8.1.4 and 8.1.5). */
function requireOwnStream({ subject }: SetClaims, { stream }: ReceivedStream): void {
  if (subject.format !== 'opaque' || subject.id !== stream?.stream_id)
    throw new SetError('invalid_request', 'sub_id is not the stream')
}

function statusOf(value: unknown): Control {
  if (value !== 'enabled' && value !== 'paused' && value !== 'disabled')
    throw new SetError('invalid_request', 'status is not enabled, paused or disabled')
  return { kind: 'status', status: value }
}
