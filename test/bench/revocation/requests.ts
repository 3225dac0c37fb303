/** Requests that go on while a grant is removed: when was the last one let through? */
import { Pool } from 'undici'
import type { Nodes } from '../nodes/nodes.ts'
import type { Place } from './fronts.ts'

export type RequestTrials = {
  readonly name: string
  readonly trials: number
  /** Sent after the acknowledgement and let through: must be 0. */
  readonly after: number
  /** Of each trial: from the acknowledgement to the last answer that let a request through; 0: it came before. */
  readonly lastMs: readonly number[]
}
type Watched = { readonly name: string; readonly trials: number; readonly pool: Pool; after: number; lastMs: number[] }
/** `acknowledgedMs`: null until it is. */
type Trial = { readonly path: string; acknowledgedMs: number | null }

const AT_A_TIME = 4
const WARM_REQUESTS = 2
const WAIT_MS = 30_000
const TOKEN_MS = 300_000

export async function measureRequests(
  nodes: Nodes,
  places: readonly Place[],
  trials: number,
): Promise<readonly RequestTrials[]> {
  const watched = places.map(({ name, port }): Watched => {
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: AT_A_TIME })
    return { name, trials, pool, after: 0, lastMs: [] }
  })
  const mint = async () => ({ text: await nodes.token(), untilMs: Date.now() + TOKEN_MS })
  let token = await mint()
  const left = Array.from({ length: trials }, (_, i) => i).values()
  const worker = async (): Promise<void> => {
    for (const i of left) {
      if (Date.now() > token.untilMs) token = await mint()
      await play(i, { nodes, watched, token: token.text })
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  await Promise.all(watched.map(({ pool }) => pool.destroy()))
  return watched
}

type World = { readonly nodes: Nodes; readonly watched: readonly Watched[]; readonly token: string }

/** Another node takes each write. */
async function play(i: number, { nodes, watched, token }: World): Promise<void> {
  const tuple = `invoice:r${i}#viewer@service:bench`
  const write = (kind: 'write' | 'delete', node: number): Promise<void> =>
    nodes.manage('POST', '/v1/organizations/acme/relationships', { [kind]: [tuple] }, node)
  await write('write', i)
  const trial: Trial = { path: `/invoices/r${i}`, acknowledgedMs: null }
  const warm = watched.map(() => Promise.withResolvers<void>())
  const asking = watched.map((one, at) => ask(trial, { one, token, isWarm: () => warm[at]?.resolve() }))
  // What fails ends the wait as well.
  await Promise.race([Promise.all(warm.map(({ promise }) => promise)), Promise.all(asking)])
  await write('delete', i + 1)
  trial.acknowledgedMs = performance.now()
  await Promise.all(asking)
}

/** One after another, until one is refused that was sent after the acknowledgement. */
async function ask(
  trial: Trial,
  { one, token, isWarm }: { readonly one: Watched; readonly token: string; readonly isWarm: () => void },
): Promise<void> {
  const headers = { host: 'app.test', authorization: `Bearer ${token}` }
  const startedMs = performance.now()
  let lastMs = 0
  for (let allowed = 0; ; ) {
    const wasAcknowledged = trial.acknowledgedMs !== null
    const { statusCode, body } = await one.pool.request({ method: 'GET', path: trial.path, headers })
    await body.dump()
    const arrivedMs = performance.now()
    if (statusCode === 200) {
      allowed += 1
      if (wasAcknowledged) one.after += 1
      if (trial.acknowledgedMs !== null) lastMs = Math.max(lastMs, arrivedMs - trial.acknowledgedMs)
    }
    if (allowed >= WARM_REQUESTS) isWarm()
    // 503 is a refusal as well, but says nothing of the grant.
    if (wasAcknowledged && statusCode === 403) break
    if (arrivedMs - startedMs > WAIT_MS) throw new Error(`${one.name} still answers ${statusCode}`)
  }
  one.lastMs.push(lastMs)
}
