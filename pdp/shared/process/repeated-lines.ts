/** Limits repeated log lines: writes the first line of a kind, then a summary with the number of repetitions. */

const WINDOW_MS = 10_000
const KINDS_MAX = 500
/** Fields that distinguish lines of one event. Request ids are not included, because they would make every line unique. */
const DISTINGUISHING = ['code', 'reason', 'address', 'issuer', 'against', 'route', 'part', 'route_file'] as const
const REASON_CHARS_MAX = 120

export function createRepeatedLines() {
  const kinds = new Map<string, { count: number; write: (summary: object) => void; entry: object }>()

  function wait(kind: string): void {
    setTimeout(() => {
      const { count, write, entry } = kinds.get(kind) ?? { count: 0, write: () => undefined, entry: {} }
      kinds.delete(kind)
      if (count === 0) return
      // While repetitions continue, one summary is written per window.
      kinds.set(kind, { count: 0, write, entry })
      wait(kind)
      write({ ...summaryOf(entry), repeated: count, seconds: WINDOW_MS / 1_000 })
    }, WINDOW_MS).unref()
  }

  return {
    /** True: write the line now. Otherwise it is counted, and `write` is called later with a summary. */
    admit(entry: object, write: (summary: object) => void): boolean {
      const event = 'event' in entry && typeof entry.event === 'string' ? entry.event : null
      // Decisions are always logged.
      if (event === null || event === 'decision') return true
      const own = kindOf(event, entry)
      const kind = kinds.has(own) || kinds.size < KINDS_MAX ? own : event
      const known = kinds.get(kind)
      if (known !== undefined) {
        known.count += 1
        known.write = write
        known.entry = entry
        return false
      }
      kinds.set(kind, { count: 0, write, entry })
      wait(kind)
      return true
    },
  }
}

function kindOf(event: string, entry: object): string {
  const fields = Object.entries(entry).filter(([name]) => DISTINGUISHING.some((known) => known === name))
  const texts = fields.map(([name, value]) => `${name}=${generalized(value)}`)
  return [event, ...texts, 'err' in entry ? describeError(entry.err) : ''].join(' ')
}

/** The text without its numbers, such as ids and durations: texts that differ only in these are equal. */
const generalized = (value: unknown): string => String(value).slice(0, REASON_CHARS_MAX).replace(/\d+/g, '#')

/** Uses the error's type and origin, because its message may contain ids. */
function describeError(err: unknown): string {
  if (!(err instanceof Error)) return generalized(err)
  const place = err.stack?.split('\n').find((line) => /^\s+at /.test(line)) ?? ''
  return `${err.name} ${'code' in err ? String(err.code) : ''} ${place.trim()}`
}

/** The last entry without its stack, which the first line contains. */
function summaryOf(entry: object): object {
  const err = 'err' in entry ? entry.err : undefined
  return err instanceof Error ? { ...entry, err: `${err.name}: ${err.message}` } : entry
}

/** Samples lines about successes: true for the first of each `oneIn` calls. */
export function everyNth(oneIn: number): () => boolean {
  let count = 0
  return () => {
    count = (count % oneIn) + 1
    return count === 1
  }
}
