/** The token journal in memory. A revocation is dropped when all tokens that it revokes have expired. */
import { ISSUER_REVOCATION_KEPT_MS, REVOCATION_KEPT_MS, type Revocation } from '../../../shared/domain/revocation.ts'

/** From this number on, expired revocations are removed whenever the number has doubled. */
const PRUNE_FROM = 1_000
const ENTRY_BYTES = 120

export class RevokedTokens {
  readonly #held = new Map<string, { readonly atMs: number; readonly issuedUntilMs: number }>()
  #newestMs = 0
  #pruneAt = PRUNE_FROM
  #keyBytes = 0

  constructor(revocations: readonly Revocation[]) {
    for (const revocation of revocations) this.#note(revocation)
    this.#pruneAt = Math.max(PRUNE_FROM, this.#held.size * 2)
  }

  get bytes(): number {
    return 100 + this.#held.size * ENTRY_BYTES + this.#keyBytes
  }

  /** The time in milliseconds when the key was revoked; undefined: it was not. */
  at(key: string): number | undefined {
    return this.#held.get(key)?.atMs
  }

  revokes(key: string, issuedAtMs: number): boolean {
    const held = this.#held.get(key)
    return held !== undefined && issuedAtMs <= held.issuedUntilMs
  }

  /** The latest revocation of a key counts: a client's tokens may be revoked repeatedly, and rows have no order. */
  #note(revocation: Revocation): void {
    const { key, atMs } = revocation
    const before = this.#held.get(key)
    if (before === undefined) this.#keyBytes += key.length
    this.#held.set(key, {
      atMs: Math.max(before?.atMs ?? atMs, atMs),
      issuedUntilMs: Math.max(before?.issuedUntilMs ?? 0, issuedUntil(revocation)),
    })
    this.#newestMs = Math.max(this.#newestMs, atMs)
  }

  add(revocation: Revocation): void {
    this.#note(revocation)
    if (this.#held.size < this.#pruneAt) return
    for (const [key, { atMs }] of this.#held) {
      if (atMs >= this.#newestMs - keptMs(key)) continue
      this.#held.delete(key)
      this.#keyBytes -= key.length
    }
    this.#pruneAt = Math.max(PRUNE_FROM, this.#held.size * 2)
  }
}

/** Revoking a client ends the tokens issued until then; the client may get new ones. */
function issuedUntil({ key, atMs, issuedUntilMs }: Revocation): number {
  if (issuedUntilMs !== undefined) return issuedUntilMs
  return key.startsWith('client ') ? atMs : Number.POSITIVE_INFINITY
}

const keptMs = (key: string): number => (key.startsWith('foreign_') ? ISSUER_REVOCATION_KEPT_MS : REVOCATION_KEPT_MS)
