/** Standard output for logs: the lines of a moment leave in one write, since each write costs as much as making its line. */
import { type DestinationStream, pino } from 'pino'

/** What a killed process may lose; at any other end everything is written. */
const WAIT_MS = 20
const CHARACTERS_MAX = 16 * 1024
/** Kept when nobody can write, as on a full disk; lines beyond it are dropped. */
const UNWRITTEN_BYTES_MAX = 1024 * 1024

/** Once in a process. Writing never throws: a log that cannot be written must not end what it tells about. */
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
