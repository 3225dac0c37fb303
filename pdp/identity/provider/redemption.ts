/**
 * Redeeming a code, an approved request or a refresh token is one step: what is redeemed is used up, and the next refresh token
 * stored, only when the answer is ready and somebody still waits for it. oidc-provider does both first and may fail afterwards
 * (a wrong resource, a lost database, a deadline), which would cost the client what it redeems.
 *
 * A window remains: when PostgreSQL's answer to COMMIT is lost, or the deadline falls between the last look at whether somebody
 * waits and the end of COMMIT, what the client redeems is used up although the answer says to try again.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { errors, type Provider } from 'oidc-provider'
import type { Sql } from '../../engine/store/directory.ts'
import type { Revocations } from '../issuer/tokens/revocation.ts'
import { STATUS } from '../oauth/status.ts'

/** A row of oidc_record before it is written. */
export type PendingRecord = {
  readonly key: string
  readonly payload: string
  readonly grantId: string | null
  readonly seconds: number | null
}
/** Grants that clients poll for (RFC 8628 section 3.5): a second, overlapping poll for one is no theft. */
export const POLLED: ReadonlySet<string> = new Set(['DeviceCode', 'BackchannelAuthenticationRequest'])
const CONTEXT = { actor: 'identity', requestId: '' }
type Pending = {
  readonly sinceMs: number
  used: { readonly kind: string; readonly key: string } | null
  next: PendingRecord | null
}
export type Redemption = {
  /** Notes that this code or token is redeemed, and returns true; false outside a token request. */
  use(kind: string, key: string): boolean
  /** Notes a refresh token to store, and returns true; false unless it belongs to something that `use` noted. */
  store(record: PendingRecord): boolean
  /** Throws InvalidGrant when this token request may have been under way when another one used up, `ageMs` ago, what it redeems. */
  requireLater(ageMs: number): void
  install(provider: Provider): void
}

/**
 * `consumed_at` is when the transaction began, but others see it only when it has ended: a request that began in between and
 * reads afterwards is no later one. No transaction takes longer than the database's bound for one, `transactionMs`.
 */
const TRANSACTION_SLACK_MS = 5_000

const REDEEM = `
  with used as (
    update oidc_record set consumed_at = now() where kind = $1 and id = $2 and consumed_at is null returning 1),
  stored as (
    insert into oidc_record (kind, id, payload, grant_id, expires_at)
    select 'RefreshToken', $3, $4::jsonb, $5, now() + make_interval(secs => $6::int) from used where $3::text is not null)
  select 1 from used`

/** `path`: the token endpoint's. `clock`: monotonic milliseconds. */
export function createRedemption(deps: {
  readonly sql: Pick<Sql, 'transaction'>
  readonly revocations: Pick<Revocations, 'endReused'>
  readonly path: string
  readonly clock: () => number
}): Redemption {
  const requests = new AsyncLocalStorage<Pending>()

  async function settle({ used, next }: Pending, isAwaited: () => boolean): Promise<void> {
    if (used === null) return
    const isFirst = await deps.sql.transaction(async (tx) => {
      const values = [used.kind, used.key, next?.key, next?.payload, next?.grantId, next?.seconds]
      // Only one of several simultaneous requests finds the row.
      if ((await tx.query(REDEEM, values)).length === 0) return false
      if (!isAwaited()) throw new errors.InvalidGrant('nobody waits for the answer')
      return true
    })
    if (isFirst) return
    // The grant ends: the thief may be either of the two requests (RFC 6749 section 4.1.2, RFC 9700 section 4.14.2).
    if (!POLLED.has(used.kind)) await deps.revocations.endReused(used, CONTEXT)
    throw new errors.InvalidGrant('used before')
  }

  return {
    use(kind, key) {
      const pending = requests.getStore()
      if (pending === undefined) return false
      pending.used = { kind, key }
      return true
    },
    store(record) {
      const pending = requests.getStore()
      if (pending === undefined || pending.used === null) return false
      pending.next = record
      return true
    },
    requireLater(ageMs) {
      const pending = requests.getStore()
      if (pending === undefined) return
      if (ageMs <= deps.clock() - pending.sinceMs + TRANSACTION_SLACK_MS) throw new errors.InvalidGrant('used before')
    },
    install(provider) {
      provider.use(async (ctx, next) => {
        if (ctx.path !== deps.path) return next()
        const pending: Pending = { sinceMs: deps.clock(), used: null, next: null }
        await requests.run(pending, next)
        if (!isAnswered(ctx)) return
        try {
          await settle(pending, () => ctx.writable)
        } catch (err) {
          const isUsed = err instanceof errors.OIDCProviderError
          ctx.status = isUsed ? STATUS.invalid : STATUS.failed
          ctx.body = isUsed ? { error: 'invalid_grant', error_description: 'used before' } : { error: 'server_error' }
          if (!isUsed) provider.emit('server_error', ctx, err)
        }
      })
    },
  }
}

const isAnswered = ({ body }: { readonly body: unknown }): boolean =>
  typeof body === 'object' && body !== null && 'access_token' in body
