/** Loads a port with wrk, which takes little of the two cores: as fast as it goes, at a fixed rate, or with one proof each. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type Load = {
  readonly port: number
  readonly path: string
  readonly fields: { readonly [name: string]: string }
  readonly connections?: number
}
export type Measured = {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Requests that were not answered with 2xx. */
  readonly refused: number
}

const CONNECTIONS = 32
export const ROUNDS = 3

/** Rejects when a request was not answered with 2xx. */
export const fullSpeed = async (load: Load, seconds: number): Promise<Measured> =>
  allServed(await sustained(load, seconds))

/** As fullSpeed, but on a machine that others use as well some questions may miss their deadline. */
export const sustained = (load: Load, seconds: number): Promise<Measured> => wrk(load, { seconds, script: null })

function allServed(measured: Measured): Measured {
  if (measured.refused > 0) throw new Error(`${measured.refused} requests were not served`)
  return measured
}

/** Each connection waits for a random time after every answer, so that requests do not come in step. */
export async function atRate(load: Load, rate: number, seconds: number): Promise<Measured> {
  const longestMs = Math.round((2_000 * CONNECTIONS) / rate)
  return allServed(await wrk(load, { seconds, script: `function delay() return math.random(0, ${longestMs}) end` }))
}

/** Each request takes the next proof; ends when they are used up. Rejects as `fullSpeed`. */
export async function withProofs(load: Load, proofs: readonly string[], seconds: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-proofs-'))
  const path = join(folder, 'proofs')
  writeFileSync(path, proofs.join('\n'))
  const script = `local at = 0
local proofs = {}
for line in io.lines("${path}") do proofs[#proofs + 1] = line end
function request()
  at = at + 1
  if at > #proofs then wrk.thread:stop() at = 1 end
  wrk.headers["DPoP"] = proofs[at]
  return wrk.format("GET")
end`
  try {
    return allServed(await wrk(load, { seconds, script }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function wrk(
  { port, path, fields, connections = CONNECTIONS }: Load,
  how: { seconds: number; script: string | null },
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-wrk-'))
  const script = join(folder, 'script.lua')
  writeFileSync(script, (how.script ?? '') + REPORT)
  const headers = Object.entries(fields).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const words = ['-t1', `-c${connections}`, `-d${how.seconds}s`, '--latency', '-s', script, ...headers]
  try {
    const { stdout } = await promisify(execFile)('wrk', [...words, `http://127.0.0.1:${port}${path}`])
    const errors = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout)
    const [, connects = '0', reads = '0', writes = '0', late = '0'] = errors ?? []
    if (Number(connects) + Number(reads) + Number(writes) > 0) throw new Error(stdout)
    const share = (name: string): number => milliseconds(new RegExp(`${name}%\\s+([\\d.]+)(us|ms|s)\\b`).exec(stdout))
    return {
      perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? 0),
      p50Ms: share('50'),
      p99Ms: share('99'),
      p999Ms: Number(/^p99\.9 (\d+)$/m.exec(stdout)?.[1] ?? 0) / 1_000,
      refused: Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0) + Number(late),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** wrk itself goes as far as 99 %. In microseconds. */
const REPORT = `
function done(_, latency) io.write(string.format("p99.9 %d\\n", latency:percentile(99.9))) end`
const UNITS: { readonly [unit: string]: number } = { us: 0.001, ms: 1, s: 1_000 }
const milliseconds = (match: RegExpExecArray | null): number => Number(match?.[1] ?? 0) * (UNITS[match?.[2] ?? ''] ?? 0)

/** For each load the medians of its figures, of rounds in turn, so that what else the machine does falls on all. */
export async function medians(loads: readonly Load[], measure: (load: Load) => Promise<Measured>): Promise<Measured[]> {
  const found = loads.map((): Measured[] => [])
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [at, load] of loads.entries()) found[at]?.push(await measure(load))
  return found.map((rounds) => {
    const median = (figure: keyof Measured): number =>
      rounds.map((one) => one[figure]).sort((a, b) => a - b)[ROUNDS >> 1] ?? 0
    return {
      perSecond: median('perSecond'),
      p50Ms: median('p50Ms'),
      p99Ms: median('p99Ms'),
      p999Ms: median('p999Ms'),
      refused: median('refused'),
    }
  })
}
