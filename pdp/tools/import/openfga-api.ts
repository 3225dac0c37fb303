/** Reads a store out of a running OpenFGA: its latest model and all its tuples, page by page. */
import { documentOf } from '../../engine/decide/language/document.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { modelTextOf } from '../model-test/model-text.ts'
import { refused } from './mapping.ts'
import type { FgaTuple } from './openfga.ts'

const PAGE_SIZE = 100
const TUPLES_MAX = 10_000_000
const TIMEOUT_MS = 30_000

/** `url`: origin and path, without `/stores`. Throws PdpError `request_invalid` when the answer is not OpenFGA's. */
export async function readOpenFga(api: {
  readonly url: string
  readonly store: string
  readonly token: string | null
  readonly fetch: typeof fetch
}): Promise<{ readonly model: string; readonly tuples: readonly FgaTuple[] }> {
  const { authorization_models: models } = await ask(api, 'authorization-models?page_size=1', null)
  const [document] = Array.isArray(models) ? models : []
  if (document === undefined) throw refused(`store ${api.store} has no model`)
  const model = modelTextOf(documentOf(document))
  const tuples: FgaTuple[] = []
  for (let token = ''; ; ) {
    const page = await ask(api, 'read', {
      page_size: PAGE_SIZE,
      ...(token === '' ? {} : { continuation_token: token }),
    })
    if (!Array.isArray(page.tuples)) throw refused('the answer to read has no tuples')
    for (const item of page.tuples) tuples.push(readTuple(item))
    if (tuples.length > TUPLES_MAX) throw refused(`the store has more than ${TUPLES_MAX} tuples`)
    token = typeof page.continuation_token === 'string' ? page.continuation_token : ''
    if (token === '') return { model, tuples }
  }
}

function readTuple(item: unknown): FgaTuple {
  const key = isJsonObject(item) && isJsonObject(item.key) ? item.key : {}
  const { user, relation, object, condition } = key
  if (typeof user !== 'string' || typeof relation !== 'string' || typeof object !== 'string')
    throw refused('the answer to read has something that is not a tuple')
  if (!isJsonObject(condition)) return { user, relation, object }
  const { name, context = {} } = condition
  if (typeof name !== 'string' || !isJsonObject(context))
    throw refused('the answer to read has a condition without a name, or with a context that is not an object')
  return { user, relation, object, condition: { name, context } }
}

async function ask(
  { url, store, token, fetch }: Parameters<typeof readOpenFga>[0],
  call: string,
  body: object | null,
): Promise<JsonObject> {
  const address = `${url.replace(/\/$/, '')}/stores/${encodeURIComponent(store)}/${call}`
  const headers = {
    'content-type': 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  const init = body === null ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(address, { ...init, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (err: Error) => {
      throw refused(`${url} cannot be reached: ${err.cause instanceof Error ? err.cause.message : err.message}`)
    },
  )
  const answer: unknown = await response.json().catch(() => null)
  if (response.ok && isJsonObject(answer)) return answer
  const said = isJsonObject(answer) && typeof answer.message === 'string' ? `: ${answer.message}` : ''
  throw refused(`${url} answered ${call.split('?')[0]} with status ${response.status}${said}`)
}
