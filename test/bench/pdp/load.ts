/** Questions to a PDP over gRPC streams, and how they were answered. The greedy ask in a process of their own. */
import { fork } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type GrpcClient, grpcClient } from '../../consistency/history/grpc.ts'

export type Token = { readonly organization: string; readonly token: string }
export type Asker = Token & { readonly client: GrpcClient }
export type Measured = { readonly timesMs: readonly number[]; readonly refused: { readonly [code: string]: number } }
export type Flood = {
  readonly address: string
  readonly tokens: readonly Token[]
  /** Questions that are open all the time. */
  readonly open: number
  readonly ms: number
}

export const PERMISSIONS = [{ relation: 'viewer', resource: 'invoice:1' }]
/** Of one stream. */
const STREAM_QUESTIONS = 1_024

export function floodApart(flood: Flood): Promise<Measured> {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'advanced' })
  return new Promise((resolve, reject) => {
    child.once('message', (measured) => resolve(measured as Measured))
    child.once('exit', (code) => reject(new Error(`the flood ended with ${code}`)))
    child.send(flood)
  })
}

async function flood({ address, tokens, open, ms }: Flood): Promise<Measured> {
  const clients = Array.from({ length: Math.ceil(open / STREAM_QUESTIONS) }, () => grpcClient(address))
  const endMs = performance.now() + ms
  const loops = Array.from({ length: open }, (_, i) => {
    const [client, token] = [clients[i % clients.length], tokens[i % tokens.length]]
    if (client === undefined || token === undefined) throw new Error('there is nobody to ask')
    return loop({ ...token, client }, { endMs, pauseMs: 0 })
  })
  const measured = merge(await Promise.all(loops))
  for (const client of clients) client.close()
  return measured
}

export async function besides(normal: readonly Asker[], options: { ms: number; pauseMs: number }): Promise<Measured> {
  const { ms, pauseMs } = options
  const endMs = performance.now() + ms
  return merge(await Promise.all(normal.map((asker) => loop(asker, { endMs, pauseMs }))))
}

async function loop(asker: Asker, options: { readonly endMs: number; readonly pauseMs: number }): Promise<Measured> {
  const timesMs: number[] = []
  const refused: { [code: string]: number } = {}
  while (performance.now() < options.endMs) {
    const startedMs = performance.now()
    const problem = await ask(asker)
    if (problem === null) timesMs.push(performance.now() - startedMs)
    else refused[problem] = (refused[problem] ?? 0) + 1
    if (options.pauseMs > 0) await delay(Math.random() * 2 * options.pauseMs)
  }
  return { timesMs, refused }
}

async function ask({ client, organization, token }: Asker): Promise<string | null> {
  const question = { organization, subject: '', permissions: PERMISSIONS, entitlements: [] }
  return client.ask(question, token).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message || 'unavailable' : 'an error'),
  )
}

function merge(all: readonly Measured[]): Measured {
  const refused: { [code: string]: number } = {}
  for (const one of all)
    for (const [code, count] of Object.entries(one.refused)) refused[code] = (refused[code] ?? 0) + count
  return { timesMs: all.flatMap(({ timesMs }) => timesMs).sort((a, b) => a - b), refused }
}

export function figures({ timesMs, refused }: Measured): string {
  const share = (part: number): string => (timesMs[Math.floor(part * timesMs.length)] ?? Number.NaN).toFixed(1)
  const codes = Object.entries(refused).map(([code, count]) => `${count} × ${code}`)
  return `${timesMs.length} answered, p50 ${share(0.5)} ms, p99 ${share(0.99)} ms, longest ${timesMs.at(-1)?.toFixed(0)} ms; refused: ${codes.join(', ') || 'none'}`
}

export const rate = (measured: Measured, ms: number): string =>
  `${((measured.timesMs.length / ms) * 1_000).toFixed(0)}/s (${figures(measured)})`

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', async (given) => {
    const measured = await flood(given as Flood)
    process.send?.(measured, () => process.exit(0))
  })
}
