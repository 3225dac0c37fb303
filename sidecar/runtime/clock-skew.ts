/** Compares this clock with the clocks of others by the `Date` fields of their answers (RFC 9110 section 6.6.1). */

export type ClockSkew = {
  /** `date` came with an answer that was asked for at `askedMs`; `ageSeconds`: for so long it lay in caches. */
  observe(
    party: string,
    answer: { readonly date: string; readonly askedMs: number; readonly ageSeconds?: number },
  ): void
  /** A sentence about the clock that differs most; null: none does. */
  hint(): string | null
}

/** Tokens are accepted for so long after their expiry. */
const NOTICED_MS = 5_000
/** A Date has no more than whole seconds. */
const DATE_MS = 1_000

// RFC 9110 section 5.6.7.
const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

export function createClockSkew(options: {
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** `behindMs`: what this clock lacks; negative when it is ahead, 0 when it does not differ by what would matter. */
  readonly onMeasured: (party: string, behindMs: number, changed: boolean) => void
}): ClockSkew {
  const { clock, onMeasured } = options
  const behind = new Map<string, number>()

  return {
    observe(party, { date, askedMs, ageSeconds = 0 }) {
      if (!IMF_FIXDATE.test(date)) return
      const saidMs = Date.parse(date) + 1_000 * (Number.isFinite(ageSeconds) ? ageSeconds : 0)
      if (!Number.isFinite(saidMs)) return
      // The answer was made at some moment between the question and now.
      const lacksMs = Math.max(0, saidMs - clock()) || Math.min(0, saidMs + DATE_MS - askedMs)
      const behindMs = Math.abs(lacksMs) < NOTICED_MS ? 0 : lacksMs
      const changed = ((behind.get(party) ?? 0) !== 0) !== (behindMs !== 0)
      behind.set(party, behindMs)
      onMeasured(party, behindMs, changed)
    },
    hint() {
      const [furthest] = [...behind].sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
      if (furthest === undefined || furthest[1] === 0) return null
      const [party, behindMs] = furthest
      const seconds = Math.round(Math.abs(behindMs) / 1_000)
      return `The clock of this server is ${seconds} s ${behindMs > 0 ? 'behind' : 'ahead of'} that of ${party}`
    },
  }
}
