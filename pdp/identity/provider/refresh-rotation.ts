/**
 * A refresh is one step: the old token is used up, and the new one stored, only when the answer is ready. oidc-provider does
 * both first and may fail afterwards (a wrong resource, a lost database), which would cost the client its token.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { errors, type Provider } from 'oidc-provider'
import type { Sql } from '../../store/directory.ts'
import { STATUS } from '../oauth/status.ts'

/** A row of oidc_record that is about to be written. */
export type PendingRecord = {
  readonly key: string
  readonly payload: string
  readonly grantId: string | null
  readonly seconds: number | null
}
type Pending = { used: string | null; next: PendingRecord | null }
export type Rotation = {
  /** True when it was noted for later; false outside a token request. */
  use(key: string): boolean
  /** True when it was noted for later: only the successor of a token that was noted before. */
  store(record: PendingRecord): boolean
  install(provider: Provider): void
}

const ROTATE = `
  with used as (
    update oidc_record set consumed_at = now() where kind = 'RefreshToken' and id = $1 and consumed_at is null returning 1)
  insert into oidc_record (kind, id, payload, grant_id, expires_at)
  select 'RefreshToken', $2, $3::jsonb, $4, now() + make_interval(secs => $5::int) from used returning 1`

/** `path`: the token endpoint's. */
export function createRotation(deps: { readonly sql: Pick<Sql, 'query'>; readonly path: string }): Rotation {
  const requests = new AsyncLocalStorage<Pending>()

  async function settle({ used, next }: Pending): Promise<void> {
    if (used === null) return
    if (next === null) throw new Error('a refresh token was used up without a successor')
    const rows = await deps.sql.query(ROTATE, [used, next.key, next.payload, next.grantId, next.seconds])
    // Of those that used it at the same time, one gets here first.
    if (rows.length === 0) throw new errors.InvalidGrant('used before')
  }

  return {
    use(key) {
      const pending = requests.getStore()
      if (pending === undefined) return false
      pending.used = key
      return true
    },
    store(record) {
      const pending = requests.getStore()
      if (pending === undefined || pending.used === null) return false
      pending.next = record
      return true
    },
    install(provider) {
      provider.use(async (ctx, next) => {
        if (ctx.path !== deps.path) return next()
        const pending: Pending = { used: null, next: null }
        await requests.run(pending, next)
        if (!isAnswered(ctx)) return
        try {
          await settle(pending)
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
