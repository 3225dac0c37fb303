/** Says at the start which stored models have conditions that an earlier version read otherwise. */
import { takesNumberAsInstant } from '../../engine/decide/conditions/number-instants.ts'
import { readDocument } from '../../engine/decide/language/document.ts'
import type { Store } from '../../engine/store/contract.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { Log } from '../../shared/process/log.ts'

/** One line for each model. A database that does not answer now must not end the PDP for this. */
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
    // Not a warning: of warnings of one event, all but the first are only counted.
    log.info({ event: 'condition_takes_seconds', app, conditions, todo })
  }
}

/** Names of conditions. None where the text cannot be read, which every question about it says. */
function numberInstants(text: string): readonly string[] {
  if (!/\btimestamp\s*\(/.test(text)) return []
  try {
    const conditions = Object.entries(readDocument(text).conditions)
    return conditions.filter(([, condition]) => takesNumberAsInstant(condition)).map(([name]) => name)
  } catch {
    return []
  }
}
