/** A folder and, when a test starts one, a sidecar with a route table of two: both gone after the test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { loadConfig } from '../../../sidecar/config/config.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import type { watchConfig } from '../../../sidecar/runtime/reload.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, routeFile, startHarness } from '../support/harness.ts'

export const ROUTES = 'GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}'
export const script = tuples(['alice viewer invoice:1'])

class RuntimeWorld {
  folder = ''
  readonly closers: (() => void)[] = []
  #started: Harness | null = null

  async start(options: Partial<Parameters<typeof startHarness>[0]> = {}): Promise<Harness> {
    this.#started = await startHarness({ routes: ROUTES, script, ...options })
    return this.#started
  }

  /** Returns the file's path. */
  write(name: string, text: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, text)
    return path
  }

  async close(): Promise<void> {
    for (const close of this.closers.splice(0)) close()
    await this.#started?.close()
    this.#started = null
    rmSync(this.folder, { recursive: true })
  }
}

export function openRuntimeWorld(): RuntimeWorld {
  const world = new RuntimeWorld()
  beforeEach(() => {
    world.folder = mkdtempSync(join(tmpdir(), 'portcullis-sidecar-'))
  })
  afterEach(() => world.close())
  return world
}

export const certificate = (name = 'localhost') => makeCertificate({ names: [name], days: 1, nowMs: Date.now() })

/** A route file for the upstream and the PDP of the harness. */
export const source = (harness: Harness, routes: string): string =>
  routeFile(routes).replace('UPSTREAM', harness.upstream.origin).replace('PDP', harness.pdp.address)

/** Of a watch over the file at `path` that looks when a test says so. */
export function settings(harness: Harness, path: string) {
  const push = (entry: object): void => void harness.log.push(entry)
  return {
    path,
    started: loadConfig(path),
    load: async () => loadConfig(path),
    apply: harness.sidecar.apply,
    everyMs: 1_000_000,
    log: { info: push, warn: push, error: push },
    metrics: harness.metrics,
    clock: Date.now,
  }
}

/** A file counts when it is the same in two looks. */
export async function currentView(reload: ReturnType<typeof watchConfig>): Promise<void> {
  await reload.check()
  await reload.check()
}
