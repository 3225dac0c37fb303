/** Encrypts all values of the old master key with the next one, while the PDPs serve. Can be stopped and run again. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from '../../../engine/store/directory.ts'
import { fingerprintOf, masterKeysOf, open, seal } from '../../../shared/base/encryption.ts'
import { StartError } from '../../../shared/process/exit.ts'
import { openMasterKeys, PROCESS_SILENT_SECONDS_MAX, readState } from './master-keys.ts'
import { SEALED_PLACES, type SealedRow } from './sealed-places.ts'

const BATCH = 500
const WAIT_MS = 500
// The wait until all PDPs use the next key. Each looks every 10 seconds; one that was killed counts for a minute.
const WAIT_MS_MAX = 120_000
const PASSES_MAX = 10
const NAMED_MAX = 20

export type RotationDeps = {
  readonly sql: Sql
  readonly current: Buffer
  readonly next: Buffer
  /** True: reports the changes without making them. */
  readonly dryRun: boolean
  /** Gets progress lines for people, without line breaks. */
  readonly progress: (line: string) => void
  /** Gets how many values were read, and how many there are. */
  readonly counted: (done: number, total: number) => void
}
export type RotationReport = {
  readonly from: string
  readonly to: string
  /** True when the old key is no longer needed. */
  readonly complete: boolean
  readonly places: readonly { readonly what: string; readonly changed: number; readonly already: number }[]
  /** Values that neither key decrypts, which stay unchanged. `transient`: belong to sign-ins that now cannot be finished. */
  readonly unreadable: readonly { readonly what: string; readonly name: string; readonly transient: boolean }[]
}
type Process = { readonly id: string; readonly keys: readonly string[]; readonly sealing: string; readonly age: number }

/** Throws StartError if a running PDP lacks the next key, or if another rotation is not complete. */
export async function rotateMasterKey(deps: RotationDeps): Promise<RotationReport> {
  const { sql, current, next, dryRun, progress } = deps
  const [from, to] = [fingerprintOf(current), fingerprintOf(next)]
  if (from === to)
    throw new StartError('PORTCULLIS_NEXT_MASTER_KEY is the same as PORTCULLIS_MASTER_KEY: make another one')
  await openMasterKeys(sql, { current, next })
  requireNext(await processes(sql), to)
  if (dryRun) return { from, to, complete: false, ...(await pass(deps)) }
  const before = await readState(sql)
  if (before?.sealing !== to) await sql.query('update master_key set sealing = $1, rotating_from = $2', [to, from])
  await everybodySeals(sql, to, progress)
  const changed = new Map<string, number>()
  for (let i = 0; i < PASSES_MAX; i++) {
    const { places, unreadable } = await pass(deps)
    for (const place of places) changed.set(place.what, (changed.get(place.what) ?? 0) + place.changed)
    if (places.some((place) => place.changed > 0)) continue
    const complete = unreadable.every(({ transient }) => transient)
    if (complete) await sql.query('update master_key set rotating_from = null where sealing = $1', [to])
    const total = places.map(({ what, already }) => {
      const count = changed.get(what) ?? 0
      return { what, changed: count, already: Math.max(0, already - count) }
    })
    return { from, to, complete, places: total, unreadable }
  }
  throw new StartError(
    'something is still encrypted with the former master key after ten passes: run the command again',
  )
}

function processes(sql: Sql): Promise<readonly Process[]> {
  return sql.query<Process>(
    `select id, master_keys as keys, sealing, extract(epoch from now() - seen_at)::int as age from pdp_process
     where seen_at > now() - make_interval(secs => $1) order by id`,
    [PROCESS_SILENT_SECONDS_MAX],
  )
}

function requireNext(running: readonly Process[], next: string): void {
  const lacking = running.filter(({ keys }) => !keys.includes(next))
  if (lacking.length === 0) return
  const names = lacking.slice(0, NAMED_MAX).map(({ id, age }) => `  ${id} (seen ${age} s ago)`)
  throw new StartError(
    `${lacking.length} of ${running.length} running PDPs do not have the next master key, and could not read what it encrypts. Give each one PORTCULLIS_NEXT_MASTER_KEY and restart it; one that was killed counts for a minute:\n${names.join('\n')}`,
  )
}

/** Waits until each running PDP encrypts with the next key. */
async function everybodySeals(sql: Sql, next: string, progress: RotationDeps['progress']): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX
  let said = ''
  for (;;) {
    const running = await processes(sql)
    requireNext(running, next)
    const late = running.filter(({ sealing }) => sealing !== next)
    if (late.length === 0) return
    if (performance.now() > endMs)
      throw new StartError(
        `${late.map(({ id }) => id).join(', ')} still encrypts with the former master key. Nothing is lost: restart it and run the command again`,
      )
    const line = `Waiting until ${late.length} of ${running.length} running PDPs encrypt with the next key.`
    if (line !== said) progress(line)
    said = line
    await delay(WAIT_MS)
  }
}

/** Reads all encrypted values and replaces those under the old key. */
async function pass(deps: RotationDeps): Promise<Pick<RotationReport, 'places' | 'unreadable'>> {
  const unreadable: RotationReport['unreadable'][number][] = []
  const places: RotationReport['places'][number][] = []
  const counts = await Promise.all(SEALED_PLACES.map((place) => place.count(deps.sql)))
  const total = counts.reduce((sum, count) => sum + count, 0)
  let done = 0
  for (const place of SEALED_PLACES) {
    const keys = {
      next: masterKeysOf(deps.next).derive(place.purpose),
      former: masterKeysOf(deps.current).derive(place.purpose),
    }
    let [changed, already] = [0, 0]
    let after: readonly string[] | null = null
    for (;;) {
      const rows: readonly SealedRow[] = await place.page(deps.sql, after, BATCH)
      if (rows.length === 0) break
      after = rows.at(-1)?.key ?? null
      const found = rows.map((row) => ({ row, ...assess(place.nameOf(row.key), row, keys) }))
      const toChange = found.flatMap(({ row, replacement }) => (replacement === null ? [] : [{ ...row, replacement }]))
      changed += deps.dryRun ? toChange.length : toChange.length > 0 ? await place.replace(deps.sql, toChange) : 0
      already += found.filter(({ state }) => state === 'already').length
      for (const { row, state } of found)
        if (state === 'unreadable')
          unreadable.push({ what: place.what, name: row.key.join(' '), transient: place.transient })
      done += rows.length
      deps.counted(done, total)
    }
    places.push({ what: place.what, changed, already })
  }
  return { places, unreadable }
}

function assess(
  name: string,
  { sealed }: SealedRow,
  { next, former }: { next: readonly [Buffer, ...Buffer[]]; former: readonly [Buffer, ...Buffer[]] },
): { readonly state: 'already' | 'former' | 'unreadable'; readonly replacement: string | null } {
  try {
    open(next, name, sealed)
    return { state: 'already', replacement: null }
  } catch {
    // The value may still be under the old key.
  }
  try {
    return { state: 'former', replacement: seal(next, name, open(former, name, sealed)) }
  } catch {
    return { state: 'unreadable', replacement: null }
  }
}
