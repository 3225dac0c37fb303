/** Loads a port: as fast as it takes with wrk, or at a fixed rate, with latencies. */
import { execFileSync } from 'node:child_process'
import { Pool } from 'undici'

export type Load = {
  readonly port: number
  readonly path: string
  readonly fields: { readonly [name: string]: string }
}

/** Requests a second over 32 connections. Throws when one was not answered with 2xx. */
export function fullSpeed({ port, path, fields }: Load, seconds: number): number {
  const headers = Object.entries(fields).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const words = ['-t1', '-c32', `-d${seconds}s`, ...headers, `http://127.0.0.1:${port}${path}`]
  const text = execFileSync('wrk', words, { encoding: 'utf8' })
  if (/Non-2xx/.test(text)) throw new Error(text)
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1] ?? 0)
}

/** Milliseconds of a request that is sent every 1/rate seconds, whether others were answered or not. */
export async function atRate({ port, path, fields }: Load, rate: number, seconds: number) {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 32, pipelining: 1 })
  const tookMs: number[] = []
  const startedMs = performance.now()
  const pending: Promise<void>[] = []
  for (let at = 0; at < rate * seconds; at += 1) {
    const dueMs = startedMs + (at * 1_000) / rate
    while (performance.now() < dueMs) await new Promise((resolve) => setImmediate(resolve))
    pending.push(one())
  }
  async function one(): Promise<void> {
    const sentMs = performance.now()
    const { body } = await pool.request({ method: 'GET', path, headers: { ...fields } })
    await body.dump()
    tookMs.push(performance.now() - sentMs)
  }
  await Promise.all(pending)
  await pool.close()
  tookMs.sort((a, b) => a - b)
  const share = (part: number): number => tookMs[Math.floor(tookMs.length * part)] ?? 0
  return { p50: share(0.5), p99: share(0.99) }
}
