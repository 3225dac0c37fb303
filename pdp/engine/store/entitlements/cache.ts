/**
 * Caches entitlement values by organization, version and write id: a new version is a new key, so values need not be invalidated.
 * A value is looked up in this process's memory, then in the shared cache, then at the source.
 */

import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import type { Entitlement } from '../../../shared/domain/entitlement.ts'
import type { JournalPosition } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { EntitlementSource } from '../contract.ts'
import type { SharedCache, Slot, StatedValue } from './shared-cache.ts'

/** How many organizations' values are kept. */
const ORGANIZATIONS_MAX = 10_000
/** The most keys of one organization that are kept, those without an entitlement included. */
const KEYS_MAX = 10_000
/** The most characters that are kept in all organizations together: keys, and values as JSON. */
const CHARACTERS_MAX = 64 * 1024 * 1024
/** The name under which all values of Claims mode are kept; no entitlement key can be `*`. */
const CLAIMS = '*'
/** The longest time in the shared cache, where only this removes the values of past versions. */
const SHARED_MS_MAX = 600_000

type CachedValues = {
  readonly name: string
  readonly untilMs: number
  readonly values: Map<string, StatedValue>
  characters: number
}
type Values = ReadonlyMap<string, StatedValue>

export class EntitlementCache {
  readonly #source: EntitlementSource
  readonly #shared: SharedCache
  readonly #clock: () => number
  /** Values by organization; the one with the oldest last question comes first. */
  readonly #known = new BoundedMap<string, CachedValues>(ORGANIZATIONS_MAX)
  #characters = 0
  /** Reads under way by their arguments: equal reads share one. */
  readonly #reads = new Map<string, Promise<Values | undefined>>()

  /** `clock`: monotonic milliseconds. */
  constructor(parts: { source: EntitlementSource; shared: SharedCache; clock?: () => number }) {
    this.#source = parts.source
    this.#shared = parts.shared
    this.#clock = parts.clock ?? (() => performance.now())
  }

  /**
   * The values at exactly this position, all of one state of the source; null for a key that the organization does not have.
   * @returns undefined when the source has another version: the question has to read its positions again.
   * Throws PdpError `store_unavailable`.
   */
  async read(
    organization: string,
    position: JournalPosition,
    keys: readonly string[],
  ): Promise<ReadonlyMap<string, Entitlement | null> | undefined> {
    const known = this.#at(organization, position)
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
      const slot = this.#slot(organization, position)
      const shared = await this.#shared.read(slot, missing)
      this.#keep(organization, known, shared)
      missing = collect(shared)
      if (missing.length > 0) {
        const read = await this.#fetch(slot, position, { keys: missing, known })
        if (read === undefined) return undefined
        collect(read)
      }
    }
    // Values from before and after an unannounced change must not be mixed.
    if (areMixed(found)) {
      const whole = await this.#fetch(this.#slot(organization, position), position, { keys, known })
      if (whole === undefined) return undefined
      collect(whole)
    }
    return new Map(keys.map((key) => [key, found.get(key)?.entitlement ?? null]))
  }

  /** The values of Claims mode, which tokens carry; undefined for the same reason as `read`. */
  async claims(organization: string, position: JournalPosition): Promise<JsonObject | undefined> {
    const read = await this.read(organization, position, [CLAIMS])
    return read === undefined ? undefined : (read.get(CLAIMS)?.value ?? {})
  }

  #slot(organization: string, position: JournalPosition): Slot {
    const { entitlementVersion: version, entitlementWriteId: writeId } = position
    return { source: this.#source.name, organization, version, writeId }
  }

  #fetch(
    slot: Slot,
    position: JournalPosition,
    { keys, known }: { keys: readonly string[]; known: CachedValues },
  ): Promise<Values | undefined> {
    const name = JSON.stringify([slot, keys])
    const running = this.#reads.get(name)
    if (running !== undefined) return running
    const reading = this.#fromSource(slot, position, keys)
      .then((values) => {
        if (values !== undefined) this.#keep(slot.organization, known, values)
        return values
      })
      .finally(() => this.#reads.delete(name))
    this.#reads.set(name, reading)
    return reading
  }

  async #fromSource(slot: Slot, position: JournalPosition, keys: readonly string[]): Promise<Values | undefined> {
    const read = await this.#source.read(slot.organization, keys.includes(CLAIMS) ? 'all' : keys)
    if (read.version !== position.entitlementVersion || read.writeId !== position.entitlementWriteId) return undefined
    const { state } = read
    const entitlementOf = (key: string) => (key === CLAIMS ? claimsOf(read.values) : (read.values.get(key) ?? null))
    const values = new Map(keys.map((key) => [key, { state, entitlement: entitlementOf(key) }]))
    // The write is not awaited: it has its own deadline, and a value that was not stored is read again.
    void this.#shared.write(slot, values, Math.min(this.#source.keptMsMax ?? SHARED_MS_MAX, SHARED_MS_MAX))
    return values
  }

  #at(organization: string, position: JournalPosition): CachedValues {
    // A database restored from a backup may reach the same version again, but with another write id.
    const name = `${position.entitlementVersion} ${position.entitlementWriteId}`
    const nowMs = this.#clock()
    const last = this.#known.get(organization)
    const known = last !== undefined && nowMs < last.untilMs ? last : undefined
    const untilMs = nowMs + (this.#source.keptMsMax ?? Number.POSITIVE_INFINITY)
    const kept = known?.name === name ? known : { name, untilMs, values: new Map<string, StatedValue>(), characters: 0 }
    this.#characters -= last?.characters ?? 0
    this.#known.delete(organization)
    if (this.#known.size >= ORGANIZATIONS_MAX) this.#forgetOldest()
    this.#known.set(organization, kept)
    this.#characters += kept.characters
    return kept
  }

  /** Keeps the values, unless `known` was evicted or replaced by another version while they were read. */
  #keep(organization: string, known: CachedValues, values: Values): void {
    if (this.#known.get(organization) !== known) return
    const before = known.characters
    if (known.values.size + values.size > KEYS_MAX) {
      known.values.clear()
      known.characters = 0
    }
    for (const [key, value] of values) {
      known.characters += sizeOf(key, value) - sizeOf(key, known.values.get(key))
      known.values.set(key, value)
    }
    this.#characters += known.characters - before
    while (this.#characters > CHARACTERS_MAX) this.#forgetOldest()
  }

  #forgetOldest(): void {
    const oldest = this.#known.takeOldest()
    if (oldest === undefined) throw new TypeError('there is nothing to forget')
    this.#characters -= oldest.characters
  }
}

const sizeOf = (key: string, value: StatedValue | undefined): number =>
  value === undefined ? 0 : key.length + JSON.stringify(value).length

function claimsOf(values: ReadonlyMap<string, Entitlement>): Entitlement {
  const claims = [...values].filter(([, { enforcement }]) => enforcement === 'Claims')
  return { value: Object.fromEntries(claims.map(([key, { value }]) => [key, value])), enforcement: 'Claims' }
}

function areMixed(values: Values): boolean {
  const [first] = values.values()
  for (const { state } of values.values()) if (state !== first?.state) return true
  return false
}
