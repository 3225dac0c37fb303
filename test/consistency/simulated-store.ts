/**
 * A store whose statements take their snapshot, and have their answer arrive, exactly when a seeded scheduler says so, with
 * lost connections, a trimmed log and history lost to a failover. The history of states is kept, so that every answer can
 * be compared with what was true.
 */

import type { Reading, RowKey, Snapshot, Store } from '../../pdp/engine/store/contract.ts'
import { GrantIndex } from '../../pdp/engine/store/memory/grant-index.ts'
import {
  emptyJournal,
  entriesOf,
  type MemoryJournal,
  type MemoryState,
  START,
} from '../../pdp/engine/store/memory/journal.ts'
import type { readRowSets } from '../../pdp/engine/store/memory/rows.ts'
import { applyToMemory } from '../../pdp/engine/store/memory/write.ts'
import type { Change } from '../../pdp/shared/domain/change.ts'
import { PdpError } from '../../pdp/shared/domain/errors.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS, type Vector } from '../../pdp/shared/domain/journal.ts'

export type Moment = { readonly state: MemoryState; readonly clockMs: number }
export type Faults = {
  /** Share of statements whose answer is lost. */
  readonly lost?: number
  /** Entries that one statement answers at most. */
  readonly entriesMax?: number
}

export class SimulatedStore {
  /** Every state that was ever current, oldest first. */
  readonly moments: Moment[] = []
  clockMs = 1_000
  readonly #random: () => number
  readonly #faults: Faults
  readonly #events: (() => void)[] = []
  /** Log -> revision below which entries were trimmed. */
  #trimmed = new Map<JournalId, number>()
  #writes = 0

  readonly #readRowSets: typeof readRowSets

  constructor(random: () => number, faults: Faults, read: typeof readRowSets) {
    this.#random = random
    this.#readRowSets = read
    this.#faults = faults
    this.#publish({
      positions: new Map([ENVIRONMENT, TOKENS, DIRECTORY].map((log) => [log, START])),
      logs: new Map([[ENVIRONMENT, emptyJournal()]]),
      writes: new Map(),
      claims: new Map(),
    })
  }

  get now(): number {
    return this.moments.length - 1
  }

  #state(): MemoryState {
    const moment = this.moments[this.now]
    if (moment === undefined) throw new Error('no state')
    return moment.state
  }

  #publish(state: MemoryState): void {
    this.moments.push({ state, clockMs: this.clockMs })
  }

  /** Lets time pass; rows may expire. */
  tickClock(ms: number): void {
    this.clockMs += ms
    this.#publish(this.#state())
  }

  commit(log: JournalId, changes: readonly Change[]): void {
    const state = cloneState(this.#state(), log)
    const context = { actor: 'sim', requestId: `${++this.#writes}` }
    try {
      applyToMemory(state, {
        log,
        changes,
        context,
        preconditions: [],
        nowMs: this.clockMs,
        writeId: () => `w${this.#writes}`,
      })
    } catch (err) {
      if (err instanceof PdpError) return // refused, like any write may be
      throw err
    }
    this.#publish(state)
  }

  trim(): void {
    for (const [log, position] of this.#state().positions) {
      this.#trimmed.set(log, Math.max(this.#trimmed.get(log) ?? 0, position.revision - Math.floor(this.#random() * 3)))
    }
  }

  /** The primary is lost, and a standby that lags a few writes behind takes over. Statements under way fail. */
  failOver(): void {
    const back = Math.max(0, this.now - 1 - Math.floor(this.#random() * 4))
    const older = this.moments[back]
    if (older === undefined) return
    for (const event of this.#events.splice(0)) {
      this.#broken = true
      event()
    }
    for (const event of this.#events.splice(0)) event()
    this.#broken = false
    this.#publish(older.state)
  }
  #broken = false

  /** Runs one waiting event, whichever the scheduler likes. @returns false when there is none. */
  step(): boolean {
    const [event] = this.#events.splice(Math.floor(this.#random() * this.#events.length), 1)
    event?.()
    return event !== undefined
  }

  /** A tick's work is an event like any other. */
  readonly schedule = (run: () => void): void => {
    this.#events.push(run)
  }

  #statement<T>(read: (state: MemoryState) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#events.push(() => {
        if (this.#broken) return reject(new PdpError('store_unavailable', 'failed over'))
        const answer = read(this.#state())
        const lost = this.#random() < (this.#faults.lost ?? 0)
        this.#events.push(() => {
          if (lost || this.#broken) reject(new PdpError('store_unavailable', 'the connection was lost'))
          else resolve(answer)
        })
      })
    })
  }

  #vector(state: MemoryState, logs: readonly JournalId[]): Vector {
    const positions = logs.flatMap((log) => {
      const position = state.positions.get(log)
      return position === undefined ? [] : [[log, position] as const]
    })
    return { clockMs: this.clockMs, logs: new Map(positions) }
  }

  /** The part of the contract that reads go through. */
  get store(): Store {
    const rows = (state: MemoryState, logs: readonly JournalId[], keys: readonly RowKey[]): Reading => ({
      vector: this.#vector(state, logs),
      rows: this.#readRowSets(state.logs, keys),
    })
    const unused = (): never => {
      throw new Error('not part of the simulation')
    }
    return {
      vector: (logs) => this.#statement((state) => this.#vector(state, logs)),
      rows: (logs, keys) => this.#statement((state) => rows(state, logs, keys)),
      entries: (ranges, entriesMax) =>
        this.#statement((state) => {
          const all = ranges.flatMap(({ log, from, to }) =>
            (state.writes.get(log) ?? [])
              .flatMap((write) => entriesOf(log, write))
              .filter(
                (e, i, entries) =>
                  e.revision >= Math.max(from, this.#trimmed.get(log) ?? 0) &&
                  e.revision <= to &&
                  (e.revision > from || entries[i - 1]?.revision !== e.revision),
              ),
          )
          const max = Math.min(entriesMax, this.#faults.entriesMax ?? entriesMax)
          const last = all[max]
          return last === undefined
            ? all
            : all.slice(0, max).filter((e) => e.log !== last.log || e.revision !== last.revision)
        }),
      snapshot: async (use) => {
        let held: { state: MemoryState; clockMs: number } | null = null
        const at: Snapshot = {
          rows: (logs, keys) =>
            this.#statement((state) => {
              held ??= { state, clockMs: this.clockMs }
              const reading = rows(held.state, logs, keys)
              return { ...reading, vector: { ...reading.vector, clockMs: held.clockMs } }
            }),
          names: unused,
        }
        return use(at)
      },
      write: unused,
      tuples: unused,
      entitlements: unused,
      manifest: unused,
      organizations: unused,
      members: unused,
      roleGrants: unused,
      roleSets: unused,
      tupleShapes: unused,
      close: async () => {},
    }
  }
}

/** The written log is copied, the others are shared: states are never changed once published. */
function cloneState(state: MemoryState, log: JournalId): MemoryState {
  const logs = new Map(state.logs)
  const content = logs.get(log)
  if (content !== undefined) logs.set(log, cloneJournal(content))
  return {
    positions: new Map(state.positions),
    logs,
    writes: new Map([...state.writes].map(([id, writes]) => [id, id === log ? [...writes] : writes])),
    claims: new Map(state.claims),
  }
}

function cloneJournal(content: MemoryJournal): MemoryJournal {
  const copy = emptyJournal()
  for (const tuple of content.tuples.all()) copy.tuples.put(tuple)
  return {
    tuples: copy.tuples,
    memberships: new Map(content.memberships),
    grants: new GrantIndex(content.grants.values()),
    entitlements: new Map(content.entitlements),
    organizations: new Map(content.organizations),
    manifests: new Map(content.manifests),
    roles: new Map(content.roles),
  }
}
