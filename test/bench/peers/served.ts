/** Servers that are measured, each a process of its own that ends with this one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Grants } from '../engine/data.ts'

export type Rig = {
  /** Creates a database on the PostgreSQL that all share, and says where it is. */
  database(name: string): Promise<string>
  readonly data: Grants
  /** Whom questions are about. */
  readonly users: readonly string[]
  readonly dataDirectory: string
  /** What has to be ended, in any case. */
  readonly endings: (() => Promise<unknown>)[]
}

const READY_TRIES_MAX = 600
const CONNECTIONS = 64
const TRIES_AGAIN = 100
const AGAIN_AFTER_MS = 200

/** Eight parts at a time. */
export async function inParts<T>(
  items: readonly T[],
  size: number,
  work: (part: readonly T[]) => Promise<unknown>,
): Promise<void> {
  const starts = Array.from({ length: Math.ceil(items.length / size) }, (_, i) => i * size).values()
  const worker = async (): Promise<void> => {
    for (const start of starts) await work(items.slice(start, start + size))
  }
  await Promise.all(Array.from({ length: 8 }, worker))
}

type Sent = { readonly body: object; readonly authorization?: string | undefined }
// biome-ignore lint/suspicious/noExplicitAny: what a peer answers is used as it is, and a wrong answer ends the run
type Answer = any

export async function served(
  { endings }: Rig,
  [binary = '', ...words]: readonly string[],
  at: { origin: string; healthPath: string; authorization?: string; env?: NodeJS.ProcessEnv },
) {
  const child = spawn(binary, words, { stdio: ['ignore', 'ignore', 'inherit'], env: at.env ?? process.env })
  const pool = new Pool(at.origin, { connections: CONNECTIONS })
  endings.push(
    () => pool.destroy(),
    () => ended(child),
  )
  // However this process ends, no server stays behind.
  process.once('exit', () => child.kill('SIGKILL'))
  const send = async (method: 'PUT' | 'POST', path: string, { body, authorization }: Sent): Promise<Answer> => {
    const headers = { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) }
    const sent = { method, path, headers, body: JSON.stringify(body) }
    let response = await pool.request(sent)
    // A machine that others use as well refuses early, or has no answer in time; a client comes back then.
    for (let triesLeft = TRIES_AGAIN; [429, 503].includes(response.statusCode) && triesLeft > 0; triesLeft -= 1) {
      await response.body.dump()
      await delay(AGAIN_AFTER_MS)
      response = await pool.request(sent)
    }
    if (response.statusCode >= 300)
      throw new Error(`${method} ${path}: ${response.statusCode} ${await response.body.text()}`)
    return response.body.json()
  }
  await ready(child, `${at.origin}${at.healthPath}`)
  const post = (path: string, body: object) => send('POST', path, { body, authorization: at.authorization })
  return { send, post }
}

export async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let triesLeft = 10; ; triesLeft--) {
    try {
      return void (await work())
    } catch (err) {
      if (triesLeft === 0) throw err
      await delay(300)
    }
  }
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  for (let tries = 0; tries < READY_TRIES_MAX && child.exitCode === null; tries++) {
    if ((await fetch(url).catch(() => null))?.ok === true) return
    await delay(100)
  }
  throw new Error(`${child.spawnfile} did not become ready`)
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exit
  clearTimeout(timer)
}

export async function finished(binary: string, words: readonly string[]): Promise<void> {
  const child = spawn(binary, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  const status = await new Promise((resolve) => child.once('exit', resolve))
  if (status !== 0) throw new Error(`${binary} ${words[0]} ended with ${status}: ${said}`)
}
