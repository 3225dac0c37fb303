/** The token log in memory: what kills tokens, forgotten once no token can be alive that it would kill. */
import { REVOCATION_KEPT_MS, type Revocation } from '../../domain/revocation.ts'

/** Deaths are looked through for old ones when their number has doubled since the last time. */
const PRUNE_FROM = 1_000

export class RevokedTokens {
  readonly #atMs = new Map<string, number>()
  #newestMs = 0
  #pruneAt = PRUNE_FROM

  constructor(deaths: readonly Revocation[]) {
    for (const death of deaths) this.#note(death)
    this.#pruneAt = Math.max(PRUNE_FROM, this.#atMs.size * 2)
  }

  get bytes(): number {
    return 100 + this.#atMs.size * 120
  }

  /** The instant of the death, in milliseconds; undefined for none. */
  at(key: string): number | undefined {
    return this.#atMs.get(key)
  }

  /** A client's tokens can be ended more than once, and rows come in no order: the last time counts. */
  #note({ key, atMs }: Revocation): void {
    this.#atMs.set(key, Math.max(this.#atMs.get(key) ?? atMs, atMs))
    this.#newestMs = Math.max(this.#newestMs, atMs)
  }

  add(death: Revocation): void {
    this.#note(death)
    if (this.#atMs.size < this.#pruneAt) return
    for (const [old, at] of this.#atMs) if (at < this.#newestMs - REVOCATION_KEPT_MS) this.#atMs.delete(old)
    this.#pruneAt = Math.max(PRUNE_FROM, this.#atMs.size * 2)
  }
}
