/** Keeps lines that repeat from filling the log: the first of a kind is written, and then how many followed. */

export type RepeatedLines = {
  /** True: write it. Else it is counted, and `write` is called with what stands for it and its like. */
  admit(entry: object, write: (summary: object) => void): boolean
}

const WINDOW_MS = 10_000
const KINDS_MAX = 500
/** What tells two lines of one event apart. Ids of requests, or texts that name them, would make each a kind of its own. */
const TELLING = ['code', 'reason', 'address', 'issuer', 'against', 'route', 'part', 'route_file'] as const
const REASON_CHARS_MAX = 120

export function createRepeatedLines(): RepeatedLines {
  const kinds = new Map<string, { count: number; write: (summary: object) => void; entry: object }>()

  function wait(kind: string): void {
    setTimeout(() => {
      const { count, write, entry } = kinds.get(kind) ?? { count: 0, write: () => undefined, entry: {} }
      kinds.delete(kind)
      if (count === 0) return
      // As long as it goes on there is one line for each window.
      kinds.set(kind, { count: 0, write, entry })
      wait(kind)
      write({ ...summaryOf(entry), repeated: count, seconds: WINDOW_MS / 1_000 })
    }, WINDOW_MS).unref()
  }

  return {
    admit(entry, write) {
      const event = 'event' in entry && typeof entry.event === 'string' ? entry.event : null
      // Each decision has its line, whatever comes of it.
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
  const fields = Object.entries(entry).filter(([name]) => TELLING.some((known) => known === name))
  const texts = fields.map(([name, value]) => `${name}=${generalized(value)}`)
  return [event, ...texts, 'err' in entry ? describeError(entry.err) : ''].join(' ')
}

/** Numbers, as in ids and durations, do not tell two lines apart. */
const generalized = (value: unknown): string => String(value).slice(0, REASON_CHARS_MAX).replace(/\d+/g, '#')

/** By what it is and where it was thrown; its message may name what it was about. */
function describeError(err: unknown): string {
  if (!(err instanceof Error)) return generalized(err)
  const place = err.stack?.split('\n').find((line) => /^\s+at /.test(line)) ?? ''
  return `${err.name} ${'code' in err ? String(err.code) : ''} ${place.trim()}`
}

/** Of the last one, without the stack, which the first line has. */
function summaryOf(entry: object): object {
  const err = 'err' in entry ? entry.err : undefined
  return err instanceof Error ? { ...entry, err: `${err.name}: ${err.message}` } : entry
}
