/** Rotates the signing key. The next key is published before it signs, and the old one verifies until its tokens expire. */

import { ADVISORY_LOCKS } from '../../../engine/store/advisory-locks.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import type { MasterKeys } from '../../../shared/base/encryption.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ACCESS_TOKEN_SECONDS, PUBLIC_CACHE_SECONDS } from '../../oauth/durations.ts'
import { SIGNING_KEY_PURPOSE } from './sealed-names.ts'
import { makeKey, storeKey } from './signing-keys.ts'

/** How often a node checks whether another node changed the keys. */
export const KEYS_POLL_MS = 30_000
const SKEW_SECONDS = 60
/** The time after which all verifiers have a key set with the next key. */
export const PUBLISHED_SECONDS_MIN = PUBLIC_CACHE_SECONDS + KEYS_POLL_MS / 1_000 + SKEW_SECONDS
// The time for which the old key still verifies: a node may sign with it until its next poll.
const RETIRED_SECONDS = ACCESS_TOKEN_SECONDS + KEYS_POLL_MS / 1_000 + SKEW_SECONDS

/** Throws PdpError `conflict` while the next key was not published long enough. */
export async function rotateKeys(deps: {
  readonly sql: Sql
  readonly masterKeys: MasterKeys
}): Promise<{ readonly activeKid: string; readonly nextKid: string }> {
  const next = await makeKey(deps.masterKeys.derive(SIGNING_KEY_PURPOSE), 'next')
  return deps.sql.transaction(async (sql) => {
    await sql.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.signingKeys])
    const [row] = await sql.query<{ readonly kid: string; readonly published: number }>(
      `select kid, extract(epoch from now() - created_at)::float8 as published from signing_key
       where state = 'next' order by created_at limit 1`,
    )
    if (row === undefined) throw new PdpError('conflict', 'there are no signing keys yet: start the server once')
    const waitSeconds = Math.ceil(PUBLISHED_SECONDS_MIN - row.published)
    if (waitSeconds > 0) {
      throw new PdpError(
        'conflict',
        `the next key is so new that some verifiers may not have fetched it: try again in ${waitSeconds} seconds`,
      )
    }
    await sql.query(
      `update signing_key set state = 'retired', retire_after = now() + make_interval(secs => $1) where state = 'active'`,
      [RETIRED_SECONDS],
    )
    await sql.query("update signing_key set state = 'active' where kid = $1", [row.kid])
    await storeKey(sql, next)
    await sql.query("delete from signing_key where state = 'retired' and retire_after < now()")
    return { activeKid: row.kid, nextKid: next.kid }
  })
}

/** A text that changes with the set of keys and with the use of each key. */
export async function keysVersion(sql: Queries): Promise<string> {
  const rows = await sql.query<{ key: string }>(
    `select kid || ' ' || state as key from signing_key where state <> 'retired' or retire_after > now() order by 1`,
  )
  return rows.map(({ key }) => key).join('\n')
}
