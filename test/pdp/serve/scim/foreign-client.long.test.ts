/** A SCIM client and validator that others wrote (scim2-tester, of PyPI) finds no fault with our server. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Served, seedAcme, serve } from '../harness.ts'

const PACKAGES = ['scim2-tester==0.5.2', 'scim2-client==0.13.2', 'httpx2']
const folder = mkdtempSync(join(tmpdir(), 'scim-'))
const python = process.env.SCIM_PYTHON ?? install()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Null where Python or the packages cannot be had. */
function install(): string | null {
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'ignore' })
    execFileSync(join(folder, 'bin', 'pip'), ['install', '-q', ...PACKAGES], { stdio: 'ignore', timeout: 120_000 })
    return join(folder, 'bin', 'python')
  } catch {
    return null
  }
}

describe.skipIf(python === null)('scim2-tester', () => {
  let served: Served
  beforeAll(async () => {
    served = await serve()
    await seedAcme(served)
  })
  afterAll(() => served.close())

  test('finds no fault', async () => {
    const token = await served.manager({ client: 'directory', organization: 'acme', scopes: ['scim'] })
    const env = { ...process.env, SCIM_URL: `${served.url}/scim/v2`, SCIM_TOKEN: token }
    const { stdout } = await promisify(execFile)(python ?? '', ['test/servers/scim.py'], { env, timeout: 120_000 })
    const results = stdout
      .trim()
      .split('\n')
      .map((line): { status: string; title: string; reason: string } => JSON.parse(line))
    expect(results.length).toBeGreaterThan(10)
    expect(results.filter(({ status }) => !['SUCCESS', 'SKIPPED', 'COMPLIANT', 'ACCEPTABLE'].includes(status))).toEqual(
      [],
    )
  })
})
