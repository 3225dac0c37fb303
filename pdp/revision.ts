/** The moment that an answer holds for, as text that callers compare and do not read. */
import type { LogId, Vector } from './store/contracts.ts'

/** Equal texts, equal content of the logs. */
export function revisionText({ vector, logs }: { readonly vector: Vector; readonly logs: readonly LogId[] }): string {
  const standings = logs.flatMap((log) => {
    const standing = vector.logs.get(log)
    return standing === undefined ? [] : [[log, standing.revision, standing.writeId]]
  })
  return Buffer.from(JSON.stringify(standings)).toString('base64url')
}
