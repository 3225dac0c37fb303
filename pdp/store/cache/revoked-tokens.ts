/** The token log in memory. Revocations are forgotten once every token that they revoke has expired. */
import { REVOCATION_KEPT_MS, type Revocation } from '../../domain/revocation.ts'

/** Old revocations are removed each time their number has doubled. */
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

  /** When the key was revoked, in milliseconds; undefined if it was not. */
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
