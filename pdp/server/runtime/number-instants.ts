/** Reports at the start the stored models with conditions that an older version read differently. */
import { takesNumberAsInstant } from '../../engine/decide/conditions/number-instants.ts'
import { readDocument } from '../../engine/decide/language/document.ts'
import type { Store } from '../../engine/store/contract.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { Log } from '../../shared/process/log.ts'

/** Logs one line for each model. The PDP starts even if the database does not answer this. */
export async function nameNumberInstants({ store, log }: { readonly store: Store; readonly log: Log }): Promise<void> {
  const reading = await store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'manifests' }]).catch((err: unknown) => {
    if (err instanceof PdpError) return { rows: [] }
    throw err
  })
  const manifests = reading.rows.flatMap((row) => ('manifests' in row ? row.manifests : []))
  for (const { app, model } of manifests) {
    const conditions = numberInstants(model ?? '')
    if (conditions.length === 0) continue
    const todo =
      'timestamp(number) takes seconds now, and took milliseconds before: divide by 1000 where you give it milliseconds'
    // An info line: of several warnings with one event, only the first is logged.
    log.info({ event: 'condition_takes_seconds', app, conditions, todo })
  }
}

/** The names of affected conditions; empty if the model cannot be parsed, since questions report that. */
function numberInstants(text: string): readonly string[] {
  if (!/\btimestamp\s*\(/.test(text)) return []
  try {
    const conditions = Object.entries(readDocument(text).conditions)
    return conditions.filter(([, condition]) => takesNumberAsInstant(condition)).map(([name]) => name)
  } catch {
    return []
  }
}
