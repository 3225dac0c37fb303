/** Sends the logout tokens in the database's queue to clients whose sessions ended (OpenID Connect Back-Channel Logout 1.0). */
import { randomUUID } from 'node:crypto'
import type { Queries } from '../../engine/store/directory.ts'
import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Log } from '../../shared/process/log.ts'
import { LOGOUT_EVENT } from '../../shared/token/logout-token.ts'
import { type PushOutcome, pushLogout } from '../../signals/transmitter/push.ts'
import { backoffMs, FAILING_MS_MAX } from '../../signals/transmitter/retries.ts'

const POLL_MS = 500
/** How many clients are served at once, and how many tokens per client, so that a slow client leaves capacity for others. */
const CLIENTS_MAX = 20
const TOKENS_MAX = 10
/** How long a token belongs to the process that took it; longer than a call takes. */
const TURN_SECONDS = 30
/** The life of a logout token. Section 2.4 recommends two minutes at most. */
const TOKEN_SECONDS = 120

export type LogoutOutcome = PushOutcome['kind'] | 'given_up'
export type LogoutsDeps = {
  readonly issuer: string
  readonly sql: Queries
  readonly post: Pick<GuardedPost, 'post'>
  readonly sign: (claims: JsonObject) => Promise<{ readonly token: string }>
  readonly clock: () => number
  readonly random: () => number
  readonly log: Log
  readonly onOutcome: (outcome: LogoutOutcome) => void
}
type Pending = {
  readonly id: number
  readonly client: string
  readonly user: string
  readonly sid: string
  readonly attempts: number
  readonly sinceMs: number
  /** The client's URL for logout tokens; null: the client no longer takes any. */
  readonly url: string | null
  readonly session: boolean
}

const TAKE = `
  with due as materialized (
    select p.logout_id from (
      select client_id from logout_pending where next_attempt_at <= now() and client_id <> all($1)
      group by client_id order by min(attempts_count), min(logout_id) limit $2) c, lateral (
      select logout_id from logout_pending where client_id = c.client_id and next_attempt_at <= now()
      order by logout_id limit ${TOKENS_MAX} for update skip locked) p)
  update logout_pending p set attempts_count = attempts_count + 1, next_attempt_at = now() + make_interval(secs => ${TURN_SECONDS})
  from due, client c where p.logout_id = due.logout_id and c.client_id = p.client_id
  returning p.logout_id::float8 as id, p.client_id as client, p.user_id as "user", p.sid, p.attempts_count as attempts,
    (extract(epoch from p.ended_at) * 1000)::float8 as "sinceMs", c.metadata ->> 'backchannel_logout_uri' as url,
    coalesce(c.metadata -> 'backchannel_logout_session_required' = 'true', false) as session`
const DONE = 'delete from logout_pending where logout_id = $1'
const LATER = 'update logout_pending set next_attempt_at = now() + make_interval(secs => $2) where logout_id = $1'

/** Sends queued tokens until it is closed. Several processes may run it at once. */
export function startLogouts(deps: LogoutsDeps): { close(): Promise<void> } {
  const { sql, log } = deps
  const running = new Map<string, Promise<void>>()
  let taking: Promise<void> | null = null
  let closed = false

  async function take(): Promise<void> {
    if (closed || running.size >= CLIENTS_MAX) return
    const rows = await sql.query<Pending>(TAKE, [[...running.keys()], CLIENTS_MAX - running.size])
    for (const [client, own] of Map.groupBy(rows, (row) => row.client))
      running.set(
        client,
        Promise.all(own.map((row) => send(deps, row)))
          // The outcome is not recorded, so these tokens are sent again after TURN_SECONDS.
          .catch((err: unknown) => log.warn({ event: 'logouts_not_recorded', client, err }))
          .then(() => {
            running.delete(client)
            begin()
          }),
      )
  }
  function begin(): void {
    taking ??= take()
      .catch((err: unknown) => log.warn({ event: 'logouts_not_read', err }))
      .finally(() => {
        taking = null
      })
  }
  const timer = setInterval(begin, POLL_MS).unref()
  return {
    async close() {
      closed = true
      clearInterval(timer)
      await taking
      await Promise.all(running.values())
    },
  }
}

async function send(deps: LogoutsDeps, row: Pending): Promise<void> {
  const { sql, clock, log, onOutcome } = deps
  const { id, client, url } = row
  if (url === null) return void (await sql.query(DONE, [id]))
  const outcome = await pushLogout(deps.post, { url, token: await tokenOf(deps, row) })
  const isLate = outcome.kind === 'failed' && clock() - row.sinceMs >= FAILING_MS_MAX
  onOutcome(isLate ? 'given_up' : outcome.kind)
  if (outcome.kind === 'delivered') log.info({ event: 'logout_delivered', client })
  else if (isLate) log.error({ event: 'logout_given_up', client, reason: outcome.reason })
  else log.warn({ event: 'logout_not_delivered', client, outcome: outcome.kind, reason: outcome.reason })
  if (outcome.kind !== 'failed' || isLate) return void (await sql.query(DONE, [id]))
  const waitMs = Math.max(backoffMs(row.attempts, deps.random()), outcome.retryAfterMs ?? 0)
  await sql.query(LATER, [id, waitMs / 1_000])
}

/** Signs a token for each attempt: tokens are valid for a short time only, and a client that was away would refuse an old one. */
async function tokenOf({ issuer, clock, sign }: LogoutsDeps, { client, user, sid, session }: Pending): Promise<string> {
  const iat = Math.floor(clock() / 1_000)
  const about = { sub: user, ...(session && { sid }) }
  const { token } = await sign({
    iss: issuer,
    aud: client,
    iat,
    exp: iat + TOKEN_SECONDS,
    jti: randomUUID(),
    ...about,
    events: { [LOGOUT_EVENT]: {} },
  })
  return token
}
