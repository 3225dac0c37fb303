/** Compares this clock with the clocks of peers by the `Date` fields of their responses (RFC 9110 section 6.6.1). */

/** The same as the leeway after a token's expiry: smaller differences do not matter. */
const NOTICED_MS = 5_000
/** A Date field has whole seconds. */
const DATE_MS = 1_000

// Matches a date in the form of HTTP (RFC 9110 section 5.6.7).
const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

export function createClockSkew(options: {
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** `behindMs`: how far this clock is behind; negative when it is ahead, 0 when the difference is not relevant. */
  readonly onMeasured: (party: string, behindMs: number, changed: boolean) => void
}) {
  const { clock, onMeasured } = options
  const behind = new Map<string, number>()

  return {
    /** `date`: of the response to a request sent at `askedMs`. `ageSeconds`: the response's age in caches. */
    observe(party: string, answer: { readonly date: string; readonly askedMs: number; readonly ageSeconds?: number }) {
      const { date, askedMs, ageSeconds = 0 } = answer
      if (!IMF_FIXDATE.test(date)) return
      const peerMs = Date.parse(date) + 1_000 * (Number.isFinite(ageSeconds) ? ageSeconds : 0)
      if (!Number.isFinite(peerMs)) return
      // The peer wrote the date at some time between the request and now.
      const differenceMs = Math.max(0, peerMs - clock()) || Math.min(0, peerMs + DATE_MS - askedMs)
      const behindMs = Math.abs(differenceMs) < NOTICED_MS ? 0 : differenceMs
      const changed = ((behind.get(party) ?? 0) !== 0) !== (behindMs !== 0)
      behind.set(party, behindMs)
      onMeasured(party, behindMs, changed)
    },
    /** A sentence about the largest difference; null: no difference is relevant. */
    hint(): string | null {
      const [furthest] = [...behind].sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
      if (furthest === undefined || furthest[1] === 0) return null
      const [party, behindMs] = furthest
      const seconds = Math.round(Math.abs(behindMs) / 1_000)
      return `The clock of this server is ${seconds} s ${behindMs > 0 ? 'behind' : 'ahead of'} that of ${party}`
    },
  }
}
