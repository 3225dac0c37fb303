/** The three services of docs/filtered-answers.md, as they are, behind a sidecar with the routes of that page. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { freePort } from '../../support/free-port.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { installFromPypi } from '../../support/programs/pypi.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const PAGE =
  /```yaml\n# filtered-answers\.md\n(.*?)```/s.exec(readFileSync('docs/filtered-answers.md', 'utf8'))?.[1] ?? ''
const ROUTES = Object.entries(parse(PAGE).routes as object)
  .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  .join('\n')
const MAY = ['viewer invoice:1', 'viewer invoice:3', 'viewer order:2', 'viewer case:5'].map((one) => `alice ${one}`)

let world: Harness
let python: ChildProcess | null = null
const closing: (() => void)[] = []
beforeAll(async () => {
  world = await startHarness({ routes: ROUTES, script: tuples(MAY) })
})
afterEach(() => {
  for (const close of closing.splice(0)) close()
})
afterAll(() => world.close())

async function behind(server: Server, path: string): Promise<string> {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  closing.push(() => server.close())
  return through((server.address() as AddressInfo).port, path)
}

/** The service in the place of the one that the harness brings. */
async function through(port: number, path: string): Promise<string> {
  world.upstream.handle = async (req, res) => {
    const answer = await fetch(`http://127.0.0.1:${port}${req.url}`)
    const head = Object.fromEntries(
      [...answer.headers].filter(([name]) => !/^(?:connection|keep-alive|transfer-encoding)$/.test(name)),
    )
    res.writeHead(answer.status, head).end(await answer.text())
  }
  const { status, body } = await world.send(`GET ${path}`, { token: await world.issuer.token() })
  expect([status, path]).toEqual([200, path])
  return body
}

test('the file of the page is valid, and passes its own tests', async () => {
  const { file, issues } = parseRouteFile(PAGE)
  expect(issues).toEqual([])
  if (file !== null) expect((await runRouteTests(file, 'page')).failures).toEqual([])
})

test('a list of Express', async () => {
  const app = express()
  app.get(
    '/invoices',
    (_, res) => void res.json({ items: [1, 2, 3].map((id) => ({ id, note: `né ${id}` })), total: 3 }),
  )
  expect(await behind(createServer(app), '/invoices').then((text) => Buffer.from(text, 'latin1').toString())).toBe(
    '{"items":[{"id":1,"note":"né 1"},{"id":3,"note":"né 3"}]}',
  )
})

test('pages of a list, each with the address of the next one', async () => {
  const all = Array.from({ length: 9 }, (_, id) => ({ id, public: id === 7 ? 'yes' : 'no' }))
  const server = createServer((req, res) => {
    const from = Number(new URL(req.url ?? '', 'http://a').searchParams.get('from') ?? 0)
    const next = from + 3 < all.length ? `/cases?from=${from + 3}` : null
    res
      .writeHead(200, { 'content-type': 'application/vnd.api+json' })
      .end(JSON.stringify({ data: all.slice(from, from + 3), next }))
  })
  const pages = [await behind(server, '/cases')]
  for (let next = JSON.parse(pages[0] ?? '').next; next !== null; next = JSON.parse(pages.at(-1) ?? '').next)
    pages.push(await through((server.address() as AddressInfo).port, next))
  expect(pages.flatMap((page) => JSON.parse(page).data.map(({ id }: { id: number }) => id))).toEqual([5, 7])
})

test('a list of FastAPI', async ({ skip }) => {
  const path = installFromPypi('fastapi', {
    packages: ['fastapi==0.116.1', 'uvicorn==0.35.0'],
    modules: 'fastapi,uvicorn',
  })
  if (path === null) return skip()
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-fastapi-'))
  const port = await freePort()
  writeFileSync(
    join(folder, 'orders.py'),
    'from fastapi import FastAPI\napp = FastAPI()\n@app.get("/orders")\ndef orders():\n    return [{"id": n, "of": {"id": 2}} for n in range(4)]\n',
  )
  python = spawn('python3', ['-m', 'uvicorn', '--port', String(port), 'orders:app'], {
    cwd: folder,
    env: { ...process.env, PYTHONPATH: path },
    stdio: 'ignore',
  })
  closing.push(() => {
    python?.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  await until(async () => (await fetch(`http://127.0.0.1:${port}/orders`).catch(() => null))?.ok === true)
  expect(await through(port, '/orders')).toBe('[{"id":2,"of":{"id":2}}]')
})
