/** Reads the positions of journals in one statement, which returns only those that changed since this process last read them. */

import { PdpError } from '../../../shared/domain/errors.ts'
import type { JournalId, JournalPosition, Vector } from '../../../shared/domain/journal.ts'
import { readTimeline, TIMELINE } from './connection/checkout.ts'
import type { Connection } from './connection/database.ts'

/** How many positions are remembered; when there are more, all are forgotten. */
const KNOWN_MAX = 10_000

/**
 * A parameter whose values the planner does not see. If it saw them, it would plan a prepared statement again for every execution,
 * which takes twice as long as the execution.
 */
export const given = (parameter: number, type: string): string => `(select $${parameter}::${type})`

/**
 * Lines of text. One begins with a space, and has the clock and the server's timeline. The others are one for each journal that has
 * moved: its index in `$1`, from 1, and its position; nothing after the index if it does not exist. `$1`: journals, `$2`: the
 * write ids at which this process knows them.
 */
export const VECTOR_LINES = `
  select concat_ws(' ', '', extract(epoch from statement_timestamp()) * 1000, ${TIMELINE})
  union all select concat_ws(' ', q.place, r.revision, r.write_id, r.entitlement_version, r.entitlement_write_id)
  from unnest(${given(1, 'text[]')}, ${given(2, 'bigint[]')}) with ordinality q(o, known, place)
    left join lateral (select revision, write_id, entitlement_version, entitlement_write_id from revision
      where organization_id = q.o offset 0) r on true
  where r.write_id is distinct from q.known`

/** The parameters of a statement with `VECTOR_LINES`, and the reader of its lines. */
export type VectorQuestion = {
  readonly values: readonly [logs: readonly JournalId[], known: readonly (string | null)[]]
  /**
   * Calls `told` with the timeline (see `ReadRows`) before it uses any position. Throws PdpError `store_unavailable` for a standby,
   * which lags behind its primary.
   */
  read(lines: Iterable<string>, told: (timeline: number) => void): Vector
}

type Asked = {
  readonly logs: readonly JournalId[]
  readonly known: readonly (JournalPosition | undefined)[]
  readonly told: (timeline: number) => void
}

/**
 * Remembers the last position of each journal that a statement returned. A write changes the whole position in one update, with a
 * write id that is never used twice; so a journal that still has the write id still has the position.
 */
export class KnownPositions {
  readonly #known = new Map<JournalId, JournalPosition>()
  readonly #wentBack: (log: JournalId, revision: number, known: number) => void

  /** `wentBack`: called when a statement returns a lower revision than was known when it was sent. */
  constructor(wentBack: (log: JournalId, revision: number, known: number) => void = () => undefined) {
    this.#wentBack = wentBack
  }

  ask(logs: readonly JournalId[]): VectorQuestion {
    const known = logs.map((log) => this.#known.get(log))
    return {
      values: [logs, known.map((position) => position?.writeId ?? null)],
      read: (lines, told) => this.#read({ logs, known, told }, lines),
    }
  }

  #read({ logs, known, told }: Asked, lines: Iterable<string>): Vector {
    let clockMs: number | null = null
    const moved = new Map<JournalId, JournalPosition | undefined>()
    for (const line of lines) {
      const [place = '', ...words] = line.split(' ')
      if (place === '') clockMs = readClock(words, told)
      else moved.set(logAt(logs, place), readPosition(words))
    }
    if (clockMs === null) throw new TypeError('the statement did not tell the time')
    this.#remember(moved)
    const positions = new Map<JournalId, JournalPosition>()
    logs.forEach((log, i) => {
      const position = moved.has(log) ? moved.get(log) : known[i]
      if (position !== undefined) positions.set(log, position)
      const before = known[i]?.revision ?? 0
      if (position !== undefined && position.revision < before) this.#wentBack(log, position.revision, before)
    })
    return { clockMs, logs: positions }
  }

  #remember(moved: ReadonlyMap<JournalId, JournalPosition | undefined>): void {
    if (this.#known.size + moved.size > KNOWN_MAX) this.#known.clear()
    for (const [log, position] of moved) {
      if (position === undefined) this.#known.delete(log)
      else this.#known.set(log, position)
    }
  }
}

/** Throws PdpError `store_unavailable`. */
export async function readVector(
  connection: Pick<Connection, 'prepared'>,
  positions: KnownPositions,
  logs: readonly JournalId[],
): Promise<Vector> {
  const question = positions.ask(logs)
  return connection.prepared('vector', VECTOR_LINES, question.values, (rows, told) =>
    question.read(
      (rows as readonly [string][]).map(([line]) => line),
      told,
    ),
  )
}

/** The journal at a place, counted from 1. */
function logAt(logs: readonly JournalId[], place: string): JournalId {
  const log = logs[Number(place) - 1]
  if (log === undefined) throw new TypeError(`the statement told of place ${place} among ${logs.length} logs`)
  return log
}

function readClock([clockMs, timeline]: readonly string[], told: (timeline: number) => void): number {
  if (timeline === undefined) throw new PdpError('store_unavailable', 'the database is a standby in recovery')
  told(readTimeline(timeline))
  return Number(clockMs)
}

function readPosition([revision, writeId, entitlementVersion, entitlementWriteId]: readonly string[]):
  | JournalPosition
  | undefined {
  if (writeId === undefined || entitlementWriteId === undefined) return undefined
  return { revision: Number(revision), writeId, entitlementVersion: Number(entitlementVersion), entitlementWriteId }
}
