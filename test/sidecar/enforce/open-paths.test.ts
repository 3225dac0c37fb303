/** Paths that some peers read without a token, under every host. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../../sidecar/config/config.ts'
import { createReloading } from '../../../sidecar/config/reloaded-config.ts'
import { firstValue } from '../../../sidecar/http/fields.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { parseOpened } from '../../../sidecar/route-file/words/open-paths.ts'
import { type Case, run } from '../support/enforcing.ts'
import { type Harness, routeFile, startHarness } from '../support/harness.ts'

const from = (line: string, more: Partial<Case> = {}): Case => ({
  routes: 'GET /**: signed_in',
  extra: 'open_paths: {/metrics: [10.0.0.0/8, "2001:db8::/32"], /status/live: [192.0.2.7]}',
  authorization: null,
  line,
  origin: { address: '10.4.2.17' },
  ...more,
})

describe('an open path', () => {
  test.each<[string, Partial<Case>]>([
    ['GET /metrics', {}],
    ['HEAD /metrics', {}],
    ['GET /metrics?name=a', {}],
    ['GET /metrics', { host: '10.4.2.17:15080' }],
    ['GET /metrics', { origin: { address: '2001:db8::1' } }],
    ['GET /status/live', { origin: { address: '192.0.2.7' } }],
  ])('passes %s of its peers: %j', async (line, more) => {
    const { outcome, asked } = await run(from(line, more))
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, basis: null, route: { check: null } })
    expect(asked).toEqual([])
  })

  test.each<[string, Partial<Case>, string]>([
    ['POST /metrics', {}, 'method_unsupported'],
    ['GET /metrics', { origin: { address: '11.0.0.1' } }, 'token_missing'],
    ['GET /status/live', {}, 'token_missing'],
    ['GET /metrics/', {}, 'token_missing'],
    ['GET /Metrics', {}, 'token_missing'],
    ['GET /metric%73', {}, 'request_invalid'],
    ['GET /metrics/a', {}, 'token_missing'],
    ['GET /x/../metrics', {}, 'request_invalid'],
    ['GET /metrics', { fields: ['X-Forwarded-For', '10.0.0.1'] }, 'token_missing'],
    ['GET /metrics', { fields: ['Forwarded', 'for=10.0.0.1'] }, 'token_missing'],
    ['GET /metrics', { fields: ['Via', '1.1 proxy'] }, 'token_missing'],
    ['GET /metrics', { fields: ['X-Real-IP', '10.0.0.1'] }, 'token_missing'],
    ['GET /metrics', { origin: { address: '11.0.0.1' }, host: '10.4.2.17' }, 'host_unknown'],
    ['GET /other', { host: '10.4.2.17' }, 'host_unknown'],
    ['GET /metrics', { origin: { address: '' } }, 'token_missing'],
  ])('is none for %s with %j', async (line, more, code) => {
    expect((await run(from(line, more))).outcome).toMatchObject({ kind: 'denial', code })
  })
})

describe('over a socket', () => {
  let gate: Harness
  beforeAll(async () => {
    gate = await startHarness({ routes: 'GET /**: signed_in', extra: 'open_paths: {/metrics: [127.0.0.1]}' })
  })
  afterAll(() => gate.close())

  test('a scraper reads it under an address, and its identity fields are removed', async () => {
    const fields = ['X-Auth-Subject: mallory']
    const options = { token: null, fields, host: '10.4.2.17:15080' }
    expect((await gate.send('GET /metrics', options)).status).toBe(200)
    expect(firstValue(gate.upstream.reached.at(-1)?.rawHeaders ?? [], 'x-auth-subject')).toBeNull()
    expect(gate.log).toContainEqual(expect.objectContaining({ route: 'open_paths /metrics', decision: 'allow' }))
    expect((await gate.send('GET /metrics', { token: null, fields: ['X-Forwarded-For: 127.0.0.1'] })).status).toBe(401)
    expect((await gate.send('GET /other', options)).status).toBe(421)
  })
})

test.each([
  ['open_paths: {/metrics/**: [10.0.0.0/8]}', 'is not a path such as /metrics'],
  ['open_paths: {"/a/{id}": [10.0.0.0/8]}', 'is not a path such as /metrics'],
  ['open_paths: {/a/../b: [10.0.0.0/8]}', 'is not a path such as /metrics'],
  ['open_paths: {"/a?b": [10.0.0.0/8]}', 'is not a path such as /metrics'],
  ['open_paths: {metrics: [10.0.0.0/8]}', 'is not a path such as /metrics'],
  ['open_paths: {/metrics: []}', '/metrics must have at least one item'],
  ['open_paths: {/metrics: }', '/metrics must be a list'],
  ['open_paths: {/metrics}', '/metrics needs the peers that it is open to'],
  ['open_paths: {/metrics: 10.0.0.0/8}', '/metrics must be a list'],
  ['open_paths: {/metrics: [0.0.0.0/0]}', 'would trust every address'],
  ['open_paths: {/metrics: [prometheus]}', 'is no IP address and no CIDR block'],
  ['open_paths: [/metrics]', 'open_paths must be a map'],
  [
    'open_paths: {/metrics: [10.0.0.0/8]}\ndoors: [{profile: nginx, listen: "unix:/run/a"}]',
    'open_paths cannot be used with doors',
  ],
])('%s is refused with a reason', (extra, message) => {
  const source = routeFile('GET /a: public', { extra })
    .replace('UPSTREAM', 'http://a.test')
    .replace('PDP', '127.0.0.1:1')
  expect(
    parseRouteFile(source)
      .issues.map((issue) => issue.message)
      .join('\n'),
  ).toContain(message)
})

test.each([
  ['/metrics=10.0.0.0/8,192.0.2.7', ['10.0.0.0/8', '192.0.2.7/32']],
  ['/metrics', null],
  ['/metrics=', null],
  ['/**=10.0.0.0/8', null],
  ['/metrics=10.0.0.0/8,=0.0.0.0/0', null],
  ['/a/../b=10.0.0.0/8', null],
  ['metrics=10.0.0.0/8', null],
])('the command line opens %s to %j', (text, peers) => {
  const opened = parseOpened(text)
  expect(opened?.peers.map(({ address, bits }) => `${address}/${bits}`) ?? null).toEqual(peers)
})

test('the command line opens no path beside doors, and what it opens stays open when the file changes', async () => {
  const opened = [parseOpened('/metrics=127.0.0.1')].filter((one) => one !== null)
  const file = routeFile('GET /**: signed_in').replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-open-'))
  try {
    const path = join(folder, 'routes.yaml')
    writeFileSync(path, file)
    const reload = createReloading(path, loadConfig(path, { opened }), { opened })
    expect((await reload()).file.openPaths).toEqual(opened)
    writeFileSync(path, `${file}  GET /other: public\n`)
    expect((await reload()).file.openPaths).toEqual(opened)
    writeFileSync(path, `${file}doors: [{profile: forward-auth, listen: "127.0.0.1:1", peers: [127.0.0.1]}]\n`)
    expect(() => loadConfig(path, { opened })).toThrow()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
