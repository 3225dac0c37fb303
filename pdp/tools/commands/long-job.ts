/** Shows the progress of a long job, and tells after Ctrl-C how to continue it. */
import { Transform } from 'node:stream'

const SHOWN_EVERY_MS = 200
/** The exit status of shells after SIGINT: 128 and the number of the signal. */
const INTERRUPTED = 130

/** `work` reports how many units are done, counted from the beginning. */
export async function watchJob<T>(
  io: NodeJS.Process,
  job: {
    /** The unit of progress, such as `lines`. */
    readonly unit: string
    /** How many units there are; null: unknown. */
    readonly total: number | null
    /** True: progress is shown. False where the output itself shows it. */
    readonly shown: boolean
    /** A text for Ctrl-C: what is stored, and how to continue. */
    left(): string
  },
  work: (report: (done: number) => void) => Promise<T>,
): Promise<T> {
  const isShown = job.shown && io.stderr.isTTY === true
  const startedMs = Date.now()
  let from: number | null = null
  let shownMs = 0
  const report = (done: number): void => {
    from ??= done
    const nowMs = Date.now()
    if (!isShown || (nowMs - shownMs < SHOWN_EVERY_MS && done !== job.total)) return
    shownMs = nowMs
    const rate = Math.round((done - from) / Math.max((nowMs - startedMs) / 1_000, 1))
    io.stderr.write(`\r${done}${job.total === null ? '' : ` of ${job.total}`} ${job.unit}, ${rate} a second`)
  }
  const stop = (): void => {
    io.stderr.write(`\nstopped: ${job.left()}\n`)
    io.exit(INTERRUPTED)
  }
  io.once?.('SIGINT', stop)
  try {
    return await work(report)
  } finally {
    io.off?.('SIGINT', stop)
    if (shownMs > 0) io.stderr.write('\n')
  }
}

export const NEWLINE = 0x0a
/** A stream that counts lines and passes everything on. */
export function countLines(report: (lines: number) => void): Transform {
  let lines = 0
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) lines += 1
      report(lines)
      done(null, piece)
    },
  })
}
