/** A job that takes long: how far it is, for who watches it, and what to do after Ctrl-C. */
import { Transform } from 'node:stream'

const SHOWN_EVERY_MS = 200
/** 128 and the number of SIGINT, as shells have it. */
const INTERRUPTED = 130

export type Job = {
  /** Such as `lines`. */
  readonly unit: string
  /** Null: not known. */
  readonly total: number | null
  /** False where the output has it already. */
  readonly shown: boolean
  /** Says what is stored, and how to go on. */
  left(): string
}

/** `work` reports how much is done, from the beginning. */
export async function watchJob<T>(
  io: NodeJS.Process,
  job: Job,
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
/** Passes everything on. */
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
