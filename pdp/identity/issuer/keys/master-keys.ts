/** Master keys. The database names the one that encrypts, so that all PDPs change to the next one together. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { ADVISORY_LOCKS } from '../../../engine/store/advisory-locks.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { fingerprintOf, type MasterKeys, masterKeysOf, open } from '../../../shared/base/encryption.ts'
import { StartError } from '../../../shared/process/exit.ts'
import type { Log } from '../../../shared/process/log.ts'
import { SIGNING_KEY_PURPOSE } from './sealed-names.ts'

/** How often a PDP reads which key encrypts, and reports which keys it has. */
export const MASTER_KEY_POLL_MS = 10_000
/** A PDP that has not reported for this long has ended. */
export const PROCESS_SILENT_SECONDS_MAX = 60

export type GivenMasterKeys = { readonly current: Buffer; readonly next: Buffer | null }
export type SharedMasterKeys = MasterKeys & {
  /** Reads now which key encrypts. Throws PdpError `store_unavailable`. */
  refresh(): Promise<void>
  /** Refreshes and reports this PDP as running, until the returned function is called. Resolves after the first report. */
  announce(deps: { readonly log: Log; readonly everyMs?: number }): Promise<() => Promise<void>>
}
export type MasterKeyState = { readonly sealing: string; readonly rotatingFrom: string | null }

/** Throws StartError if the stored values are encrypted with a key that was not given. */
export async function openMasterKeys(sql: Sql, { current, next }: GivenMasterKeys): Promise<SharedMasterKeys> {
  const given = next === null ? [current] : [current, next]
  const byFingerprint = new Map(given.map((key) => [fingerprintOf(key), key]))
  const state = (await readState(sql)) ?? (await initialState(sql, given))
  requireKeys(state, byFingerprint)
  let sealing = state.sealing
  let keys = inOrder()

  function inOrder(): MasterKeys {
    const first = byFingerprint.get(sealing) ?? current
    return masterKeysOf(first, ...given.filter((key) => key !== first))
  }

  async function refresh(): Promise<void> {
    const now = await readState(sql)
    if (now === null || now.sealing === sealing) return
    // Without all keys, stored values cannot be decrypted. A rotation does not begin while a running PDP lacks the next one.
    requireKeys(now, byFingerprint)
    sealing = now.sealing
    keys = inOrder()
  }

  return {
    derive: (purpose) => keys.derive(purpose),
    refresh,
    async announce({ log, everyMs = MASTER_KEY_POLL_MS }) {
      const id = `${hostname()} ${process.pid} ${randomUUID().slice(0, 8)}`
      async function say(): Promise<void> {
        await refresh()
        await sql.query(
          `insert into pdp_process (id, master_keys, sealing) values ($1, $2, $3)
           on conflict (id) do update set sealing = excluded.sealing, seen_at = now()`,
          [id, [...byFingerprint.keys()], sealing],
        )
      }
      await say()
      let running: Promise<void> | null = null
      const timer = setInterval(() => {
        running ??= say()
          .catch((err: unknown) => log.warn({ event: 'master_keys_unread', err }))
          .finally(() => {
            running = null
          })
      }, everyMs)
      timer.unref()
      return async () => {
        clearInterval(timer)
        await running
        await sql.query('delete from pdp_process where id = $1', [id]).catch(() => undefined)
      }
    },
  }
}

/** The state; null before the first start of a version that stores it. */
export async function readState(sql: Queries): Promise<MasterKeyState | null> {
  const [row] = await sql.query<MasterKeyState>('select sealing, rotating_from as "rotatingFrom" from master_key')
  return row ?? null
}

/** The first state: the key that encrypted the signing keys, or the current key. */
function initialState(sql: Sql, given: readonly Buffer[]): Promise<MasterKeyState> {
  return sql.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.signingKeys])
    const stored = await readState(tx)
    if (stored !== null) return stored
    const [key] = await tx.query<{ kid: string; sealed: string }>(
      "select kid, private_jwk_sealed as sealed from signing_key where state = 'active'",
    )
    const sealedBy = key === undefined ? given[0] : given.find((one) => opens(one, key))
    if (sealedBy === undefined) throw new StartError(NOT_THE_KEY)
    const sealing = fingerprintOf(sealedBy)
    await tx.query('insert into master_key (sealing) values ($1)', [sealing])
    return { sealing, rotatingFrom: null }
  })
}

const NOT_THE_KEY =
  'the signing keys cannot be opened: PORTCULLIS_MASTER_KEY is not the key that encrypted what the database holds. Give the key that was used before; to change it, run: portcullis-pdp rotate-master-key'

function opens(key: Buffer, { kid, sealed }: { readonly kid: string; readonly sealed: string }): boolean {
  try {
    open(masterKeysOf(key).derive(SIGNING_KEY_PURPOSE), kid, sealed)
    return true
  } catch {
    return false
  }
}

/** Checks that the given keys include all that the state needs. Throws StartError. */
function requireKeys({ sealing, rotatingFrom }: MasterKeyState, given: ReadonlyMap<string, Buffer>): void {
  if (!given.has(sealing)) throw new StartError(NOT_THE_KEY)
  if (rotatingFrom !== null && !given.has(rotatingFrom))
    throw new StartError(
      `the rotation of the master key is not complete: some of what the database holds is still encrypted with the former key (${rotatingFrom}). Give both keys, as PORTCULLIS_MASTER_KEY and PORTCULLIS_NEXT_MASTER_KEY, and run portcullis-pdp rotate-master-key to its end`,
    )
}

/** Forgets the PDPs that reported themselves. Call it only if no PDP uses this database. */
export const forgetProcesses = async (sql: Sql): Promise<void> => void (await sql.query('delete from pdp_process'))
