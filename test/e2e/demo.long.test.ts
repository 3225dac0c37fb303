/** What the demo tells its visitor to paste does what the text beside it says, line by line, on the demo as it stands. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PROGRAM_ENV } from '../support/programs/environment.ts'

const ROOT = resolve(import.meta.dirname, '../..')
let demo: ChildProcess
let said = ''
beforeAll(async () => {
  demo = spawn(process.execPath, ['bin/dev/demo.ts'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [demo.stdout, demo.stderr])
    stream?.on('data', (chunk) => {
      said += chunk
    })
  while (!said.includes('Ctrl-C stops') && demo.exitCode === null) await delay(50)
  if (demo.exitCode !== null) throw new Error(`the demo ended: ${said}`)
})
afterAll(async () => {
  if (demo.exitCode !== null) return
  demo.kill('SIGINT')
  await new Promise((done) => demo.once('close', done))
})

/** Of the command that begins so: its lines as they are printed, run in one shell with those that set it up. */
async function paste(command: string): Promise<string> {
  const lines = said.split('\n')
  const setUp = lines.filter((line) => /^export |^token\(\)/.test(line))
  const pasted = lines.filter((line) => line.startsWith(command))
  expect([command, pasted.length]).toEqual([command, 1])
  const shell = spawn('bash', ['-c', [...setUp, ...pasted].join('\n')], {
    cwd: ROOT,
    // As a visitor has it, without what tests are told by.
    env: { ...PROGRAM_ENV, HOME: process.env.HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  for (const stream of [shell.stdout, shell.stderr])
    stream.on('data', (chunk) => {
      out += chunk
    })
  await new Promise((done) => shell.once('close', done))
  return out
}

test('the demo stays explorable: each line that it prints does what it says', { timeout: 300_000 }, async () => {
  // As docs/start.md says.
  expect(said.match(/^(?:curl|portcullis) /gm)).toHaveLength(13)
  const [, url = ''] = /The sidecar at (\S+) guards/.exec(said) ?? []
  const get = (path: string, person?: string): Promise<string> =>
    paste(
      person === undefined
        ? `curl -i ${url}${path}`
        : `curl -i ${url}${path} -H "Authorization: Bearer $(token ${person})`,
    )
  expect(await get('/invoices/1', 'alice')).toMatch(/^HTTP\/1\.1 200 /m)
  expect(await get('/invoices/2', 'alice')).toMatch(/^HTTP\/1\.1 403 /m)
  expect(await get('/invoices/2', 'bob')).toMatch(/^HTTP\/1\.1 200 /m)
  expect(await get('/public/status')).toMatch(/^HTTP\/1\.1 200 /m)

  const why = await paste('portcullis explain user:bob')
  expect(why).toMatch(/^allowed [\s\S]*tuple: group:finance#member@group:accounting#member\n/)
  expect(readFileSync(resolve(ROOT, 'README.md'), 'utf8')).toContain(why)
  expect(await paste('portcullis explain user:alice')).toMatch(/^denied [\s\S]*invoice:2#viewer@user:alice\n/)
  expect(await paste('portcullis list resources')).toBe('invoice:2\n')

  expect(await paste('portcullis tuple delete')).toBe('deleted: 1\n')
  expect(await get('/invoices/1', 'alice')).toMatch(/^HTTP\/1\.1 403 /m)
  expect(await paste('portcullis tuple write')).toBe('stored: 1\n')
  expect(await get('/invoices/1', 'alice')).toMatch(/^HTTP\/1\.1 200 /m)

  expect(await get('/invoices/1/export', 'alice')).toMatch(/^HTTP\/1\.1 200 /m)
  await paste('portcullis entitlement put feature.export false')
  expect(await get('/invoices/1/export', 'alice')).toMatch(/^HTTP\/1\.1 403 [\s\S]*feature\.export/m)
  await paste('portcullis entitlement put feature.export true')
  expect(await get('/invoices/1/export', 'alice')).toMatch(/^HTTP\/1\.1 200 /m)
})
