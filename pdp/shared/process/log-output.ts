/** Writes logs to standard output, batching lines because each write costs as much as formatting a line. */
import { type DestinationStream, pino } from 'pino'

/** A killed process may lose the lines of this time; otherwise all lines are written at exit. */
const WAIT_MS = 20
const CHARACTERS_MAX = 16 * 1024
/** Buffer for failed writes, for example on a full disk; further lines are dropped. */
const UNWRITTEN_BYTES_MAX = 1024 * 1024

/** Call once per process. Writing never throws, because a failing log must not end the process. */
export function openLogOutput(): DestinationStream {
  const output = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_BYTES_MAX })
  output.on('error', () => undefined)
  const lines = collectLines((text) => void output.write(text))
  process.once('exit', lines.flush)
  return lines
}

export function collectLines(write: (text: string) => void): DestinationStream & { readonly flush: () => void } {
  let text = ''
  let waiting: NodeJS.Timeout | null = null

  function flush(): void {
    if (waiting !== null) clearTimeout(waiting)
    waiting = null
    const collected = text
    text = ''
    if (collected !== '') write(collected)
  }

  return {
    flush,
    write(line) {
      text += line
      if (text.length >= CHARACTERS_MAX) flush()
      else waiting ??= setTimeout(flush, WAIT_MS).unref()
    },
  }
}
