/**
 * Writes logs to standard output in batches, since a write costs as much as formatting a line. Never waits for the reader: lines that it
 * does not take in time are dropped, and their number is logged when it reads again.
 */
import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** A killed process may lose the lines of this time; otherwise all lines are written at exit. */
const WAIT_MS = 20
const CHARACTERS_MAX = 16 * 1024
/** The most bytes that wait while the reader does not read, or the disk is full. */
const UNWRITTEN_MAX = 1024 * 1024
/** Additional bytes for errors, for example the one that ends the process. */
const RESERVE = 64 * 1024
const SERIOUS = /^\{"level":"(?:error|fatal)"/
/** Waits before new attempts. A pipe has 64 KiB, so the first is short: a reader slower than one batch loses nothing. */
const RETRY_MS = { first: 1, last: 100 }
/** How long an exit waits for the reader. */
const EXIT_MS = 1_000
const EXIT_STEP_MS = 5
const LATER: ReadonlySet<unknown> = new Set(['EAGAIN', 'ENOSPC', 'EDQUOT'])
const NONE = Buffer.alloc(0)
const LINE_END = 0x0a

export type LogOutput = DestinationStream & {
  /** How many lines were dropped since the start. */
  readonly droppedCount: () => number
}

/** Opens the output, once per process. Writing never throws: a failing log must not end the process. */
export function openLogOutput(service: string): LogOutput {
  // The access sets a pipe or socket to refuse surplus bytes. Else a write would stop the process until the reader goes on.
  const { fd } = process.stdout
  const output = collectLines({ service, write: (bytes) => writeSync(fd, bytes) })
  process.once('exit', () => output.finish(performance.now() + EXIT_MS))
  return output
}

/** `write` returns how many bytes were taken. */
export function collectLines(sink: {
  readonly service: string
  readonly write: (bytes: Buffer) => number
}): LogOutput & {
  /** Returns when all is written, or at this time. */
  readonly finish: (untilMs: number) => void
} {
  /** Lines that were not tried yet. */
  let text = ''
  /** The bytes that were tried, and not taken. */
  let rest: Buffer = NONE
  let timer: NodeJS.Timeout | null = null
  let retryMs = RETRY_MS.first
  let dropped = 0
  let unsaid = 0

  const wait = (ms: number): void => {
    timer ??= setTimeout(flush, ms).unref()
  }
  /** Writes what the reader takes. False: the rest must wait. */
  function take(): boolean {
    const taken = tryToWrite(rest, sink.write)
    if (taken === 'later') return false
    if (taken === 'never') dropped += linesIn(rest)
    else retryMs = RETRY_MS.first
    rest = taken === 'never' ? NONE : rest.subarray(taken)
    return true
  }
  function flush(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    while (rest.length > 0 || text !== '') {
      if (rest.length === 0) {
        rest = Buffer.from(text)
        text = ''
      }
      if (!take()) {
        wait(retryMs)
        retryMs = Math.min(retryMs * 2, RETRY_MS.last)
        return
      }
    }
    if (unsaid > 0) text = lineAbout(sink.service, unsaid)
    unsaid = 0
    if (text !== '') wait(WAIT_MS)
  }

  return {
    droppedCount: () => dropped,
    write(line) {
      const max = SERIOUS.test(line) ? UNWRITTEN_MAX + RESERVE : UNWRITTEN_MAX
      if (rest.length + text.length + line.length > max) {
        dropped += 1
        unsaid += 1
        return
      }
      text += line
      if (rest.length === 0 && text.length >= CHARACTERS_MAX) flush()
      else wait(WAIT_MS)
    },
    finish(untilMs) {
      flush()
      while ((rest.length > 0 || text !== '') && performance.now() < untilMs) {
        if (rest.length > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EXIT_STEP_MS)
        flush()
      }
    },
  }
}

/** The number of bytes that the reader took; `later`: it takes none now; `never`: it has gone, so all further lines are useless. */
function tryToWrite(bytes: Buffer, write: (bytes: Buffer) => number): number | 'later' | 'never' {
  try {
    return write(bytes)
  } catch (err) {
    return LATER.has(err instanceof Error && 'code' in err ? err.code : null) ? 'later' : 'never'
  }
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === LINE_END) count += 1
  return count
}

const lineAbout = (service: string, count: number): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), service, event: 'log_lines_dropped', count })}\n`
