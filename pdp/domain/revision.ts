/** The moment that an answer holds for, as text that callers compare and do not read. */
import type { LogId, LogPosition, Vector } from './log.ts'

type At = { readonly vector: Vector; readonly logs: readonly LogId[] }
type Said = {
  readonly logs: readonly LogId[]
  readonly standings: readonly (LogPosition | undefined)[]
  readonly text: string
}

/** Texts that are kept at most before all are dropped. */
const SAID_MAX = 10_000

/** Equal texts, equal content of the logs. */
export function revisionText({ vector, logs }: At): string {
  const standings = logs.flatMap((log) => {
    const standing = vector.logs.get(log)
    return standing === undefined ? [] : [[log, standing.revision, standing.writeId]]
  })
  return Buffer.from(JSON.stringify(standings)).toString('base64url')
}

/** As revisionText, which is long in the making: said again from memory while none of the logs has moved. */
export function createRevisionTexts(): (at: At) => string {
  const said = new Map<LogId | undefined, Said>()
  return (at) => {
    const { logs, vector } = at
    const [first] = logs
    const last = said.get(first)
    if (last !== undefined && holds(last, at)) return last.text
    if (said.size >= SAID_MAX) said.clear()
    const text = revisionText(at)
    said.set(first, { logs, standings: logs.map((log) => vector.logs.get(log)), text })
    return text
  }
}

function holds({ logs, standings }: Said, at: At): boolean {
  if (logs.length !== at.logs.length) return false
  for (const [i, log] of at.logs.entries()) {
    const [now, then] = [at.vector.logs.get(log), standings[i]]
    if (log !== logs[i] || now?.revision !== then?.revision || now?.writeId !== then?.writeId) return false
  }
  return true
}
