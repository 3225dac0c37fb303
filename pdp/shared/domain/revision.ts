/** The journal positions of an answer, as an opaque text that can be compared. */
import { type JournalId, type JournalPosition, TOKENS, type Vector } from './journal.ts'

type At = { readonly vector: Vector; readonly logs: readonly JournalId[] }
type KnownText = {
  readonly logs: readonly JournalId[]
  readonly positions: readonly (JournalPosition | undefined)[]
  readonly text: string
}

/** How many texts are kept; when there are more, all are dropped. */
const SAID_MAX = 10_000

/** The revision as text. Equal texts mean equal content of the journals. */
export function revisionText({ vector, logs }: At): string {
  const positions = logs.flatMap((log) => {
    const position = vector.logs.get(log)
    return position === undefined ? [] : [[log, position.revision, position.writeId]]
  })
  return Buffer.from(JSON.stringify(positions)).toString('base64url')
}

/** The revision without the token journal, which changes often, for answers that depend on no token. `text`: from revisionText. */
export function withoutTokens(text: string): string {
  const positions: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  const kept = Array.isArray(positions)
    ? positions.filter((one: unknown) => !(Array.isArray(one) && one[0] === TOKENS))
    : []
  return Buffer.from(JSON.stringify(kept)).toString('base64url')
}

/** Does what revisionText does, which is slow, but returns the last text while the positions are the same. */
export function createRevisionTexts(): (at: At) => string {
  const said = new Map<JournalId | undefined, KnownText>()
  return (at) => {
    const { logs, vector } = at
    const [first] = logs
    const last = said.get(first)
    if (last !== undefined && holds(last, at)) return last.text
    if (said.size >= SAID_MAX) said.clear()
    const text = revisionText(at)
    said.set(first, { logs, positions: logs.map((log) => vector.logs.get(log)), text })
    return text
  }
}

function holds({ logs, positions }: KnownText, at: At): boolean {
  if (logs.length !== at.logs.length) return false
  return at.logs.every((log, i) => {
    const now = at.vector.logs.get(log)
    const then = positions[i]
    return log === logs[i] && now?.revision === then?.revision && now?.writeId === then?.writeId
  })
}
