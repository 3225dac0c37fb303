/**
 * The wait of a writer before its write can be seen: until each process that may answer by the old position has given it up, or its
 * term is over. If the write were seen earlier, whoever saw it could tell others, and then get an older answer.
 */
import type { Registered } from './node-lease.ts'
import { atMost, TERM_MS } from './terms.ts'

/** Parts of one round trip. Each sees what the parts before it have committed: the holders of a moment when the intent is there. */
export const ANNOUNCEMENT = ['intent', 'holders'] as const

/** `timeline`: of the primary that it was announced to. */
export type Intent = { readonly timeline: number }
/** A write takes its intent away, so that it is not made where the intent was lost, or where the holders were not all known. */
export const mayWrite = (intent: Intent | undefined, timeline: number): boolean => intent?.timeline === timeline

/** Rows that are interested in the journal. `settled`: the timeline whose registry knows everybody who may answer. */
export type Holders = {
  readonly rows: ReadonlyMap<string, Registered>
  readonly timeline: number
  readonly settled: number
  /** Another after every start of the server, which may have set a stamp back. */
  readonly serverLife: number
}
/** The row of a process that did not answer for a whole term. It goes at `atMs`, if nothing has moved until then. */
export type Removal = {
  readonly id: string
  readonly stamp: number
  readonly serverLife: number
  readonly atMs: number
}
export const mayRemove = (row: Registered | undefined, removal: Removal, serverLife: number): boolean =>
  row?.stamp === removal.stamp && serverLife === removal.serverLife

/** `settle`: note the timeline as settled if it is still the server's, then read the holders again. `reread`: read the rows again. */
export type Step =
  | { readonly kind: 'settle'; readonly afterMs: number; readonly timeline: number }
  | { readonly kind: 'reread'; readonly afterMs: number }
  | { readonly kind: 'write'; readonly afterMs: number; readonly removals: readonly Removal[] }

export type Wait = {
  /** The answer of the announcement, and of reading the holders again. */
  found(holders: Holders): Step
  /** Null: no answer came. */
  reread(rows: ReadonlyMap<string, Registered> | null): Step
}
type WaitOptions = {
  readonly clock: () => number
  readonly intent: string
  /** The id of this process when it gave up the journal itself. */
  readonly own: string | null
  readonly rereadEveryMs: number
  readonly termMs?: number
}

export function createWait({ clock, intent, own, rereadEveryMs, termMs = TERM_MS }: WaitOptions): Wait {
  const outwaitMs = atMost(termMs)
  let sinceMs: number | null = null
  let readMs = 0
  let holders: Holders | null = null
  let open: ReadonlyMap<string, Registered> = new Map()

  function next(): Step {
    const leftMs = open.size === 0 ? 0 : Math.max(0, (sinceMs ?? clock()) + outwaitMs - clock())
    if (leftMs > rereadEveryMs) return { kind: 'reread', afterMs: rereadEveryMs }
    const { rows, serverLife = 0 } = holders ?? {}
    const unmoved = [...open].filter(([id, { stamp }]) => stamp === rows?.get(id)?.stamp)
    // The stamp was read later than the intent was announced: after a failover, much later.
    const atMs = readMs + outwaitMs
    const removals = unmoved.map(([id, { stamp }]) => ({ id, stamp, serverLife, atMs }))
    return { kind: 'write', afterMs: leftMs, removals }
  }

  function note(rows: ReadonlyMap<string, Registered>): void {
    const isOpen = ([id, row]: readonly [string, Registered]): boolean =>
      id !== own && holders?.rows.has(id) === true && !row.acknowledged.has(intent)
    open = new Map([...rows].filter(isOpen))
  }

  return {
    found(found) {
      readMs = clock()
      sinceMs ??= readMs
      holders = found
      note(found.rows)
      // A failover may have lost rows of processes that still answer.
      const { timeline, settled } = found
      return timeline === settled ? next() : { kind: 'settle', afterMs: outwaitMs, timeline }
    },
    reread(rows) {
      if (rows !== null) note(rows)
      return next()
    },
  }
}
