/** A folder and, when a test starts one, a sidecar with a route table of two: both gone after the test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { tuples } from '../support/pdp.ts'

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
