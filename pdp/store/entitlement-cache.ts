/**
 * Entitlement values by organization, version and write id: a new version is a new key, so nothing is ever flushed. Asked
 * in order: this process's memory, the shared cache, the source.
 */
import type { Entitlement, EntitlementSource, Standing } from './contracts.ts'
import type { SharedCache, Slot, StatedValue } from './shared-cache.ts'

/** Organizations whose values are kept at most. */
const ORGANIZATIONS_MAX = 10_000
/** Keys of one organization that are kept at most, absent ones included. */
const KEYS_MAX = 10_000
/** In the shared cache, where values of past versions are never deleted otherwise. */
const SHARED_MS_MAX = 600_000

type Known = { readonly name: string; readonly untilMs: number; readonly values: Map<string, StatedValue> }
type Values = ReadonlyMap<string, StatedValue>

export class EntitlementCache {
  readonly #source: EntitlementSource
  readonly #shared: SharedCache
  readonly #clock: () => number
  readonly #known = new Map<string, Known>()
  /** Reads under way by what they read: who asks for the same waits for the same. */
  readonly #reads = new Map<string, Promise<Values | undefined>>()

  /** `clock`: monotonic milliseconds. */
  constructor(parts: { source: EntitlementSource; shared: SharedCache; clock?: () => number }) {
    this.#source = parts.source
    this.#shared = parts.shared
    this.#clock = parts.clock ?? (() => performance.now())
  }

  /**
   * The values at exactly this standing, all of one state of the source; null for a key that the organization does not have.
   * @returns undefined when the source has moved on: the question has to take a new vector.
   * @throws PdpError `store_unavailable`.
   */
  async read(
    organization: string,
    standing: Standing,
    keys: readonly string[],
  ): Promise<ReadonlyMap<string, Entitlement | null> | undefined> {
    const known = this.#at(organization, standing)
    const found = new Map<string, StatedValue>()
    const collect = (values: Values): readonly string[] => {
      for (const [key, value] of values) found.set(key, value)
      return keys.filter((key) => !found.has(key))
    }
    let missing: readonly string[] = keys.filter((key) => {
      const value = known.values.get(key)
      if (value !== undefined) found.set(key, value)
      return value === undefined
    })
    if (missing.length > 0) {
      const slot = this.#slot(organization, standing)
      const shared = await this.#shared.read(slot, missing)
      keep(known, shared)
      missing = collect(shared)
      if (missing.length > 0) {
        const read = await this.#fetch(slot, standing, { keys: missing, known })
        if (read === undefined) return undefined
        collect(read)
      }
    }
    // What was kept before a change that is not announced yet is not mixed with what was read after it.
    if (areMixed(found)) {
      const whole = await this.#fetch(this.#slot(organization, standing), standing, { keys, known })
      if (whole === undefined) return undefined
      collect(whole)
    }
    return new Map(keys.map((key) => [key, found.get(key)?.entitlement ?? null]))
  }

  #slot(organization: string, standing: Standing): Slot {
    const { entitlementVersion: version, entitlementWriteId: writeId } = standing
    return { source: this.#source.name, organization, version, writeId }
  }

  #fetch(
    slot: Slot,
    standing: Standing,
    { keys, known }: { keys: readonly string[]; known: Known },
  ): Promise<Values | undefined> {
    const name = JSON.stringify([slot, keys])
    const running = this.#reads.get(name)
    if (running !== undefined) return running
    const reading = this.#fromSource(slot, standing, keys)
      .then((values) => {
        if (values !== undefined) keep(known, values)
        return values
      })
      .finally(() => this.#reads.delete(name))
    this.#reads.set(name, reading)
    return reading
  }

  async #fromSource(slot: Slot, standing: Standing, keys: readonly string[]): Promise<Values | undefined> {
    const read = await this.#source.read(slot.organization, keys)
    if (read.version !== standing.entitlementVersion) return undefined
    const { state } = read
    const values = new Map(keys.map((key) => [key, { state, entitlement: read.values.get(key) ?? null }]))
    // Nobody waits for this: it ends by itself, and what did not get there is read again.
    void this.#shared.write(slot, values, Math.min(this.#source.keptMsMax ?? SHARED_MS_MAX, SHARED_MS_MAX))
    return values
  }

  #at(organization: string, standing: Standing): Known {
    // Versions only rise while the history is one; the write id of a restored one differs.
    const name = `${standing.entitlementVersion} ${standing.entitlementWriteId}`
    const nowMs = this.#clock()
    const last = this.#known.get(organization)
    const known = last !== undefined && nowMs < last.untilMs ? last : undefined
    const untilMs = nowMs + (this.#source.keptMsMax ?? Number.POSITIVE_INFINITY)
    this.#known.delete(organization)
    const kept = known?.name === name ? known : { name, untilMs, values: new Map<string, StatedValue>() }
    this.#known.set(organization, kept)
    if (this.#known.size > ORGANIZATIONS_MAX) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return kept
  }
}

function keep({ values: kept }: Known, values: Values): void {
  if (kept.size + values.size > KEYS_MAX) kept.clear()
  for (const [key, value] of values) kept.set(key, value)
}

function areMixed(values: Values): boolean {
  const [first] = values.values()
  for (const { state } of values.values()) if (state !== first?.state) return true
  return false
}
