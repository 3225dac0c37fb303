/** Sessions of older revisions of MCP at replicas that share a file of keys. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES, readCertificates } from '../../../sidecar/config/certificates.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { field } from '../../support/peers/raw-http.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'

const ROUTES = 'MCP /mcp: {tools: {open: signed_in}}\n'
const [OLD, NEW] = ['o'.repeat(32), 'n'.repeat(32)]
const replicas: Harness[] = []
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-mcp-keys-'))
})
afterEach(async () => {
  for (const one of replicas.splice(0)) await one.close()
  rmSync(folder, { recursive: true, force: true })
})

/** With these keys in its file; null: without one. */
async function startReplica(keys: readonly string[] | null): Promise<Harness> {
  const path = join(folder, `${replicas.length}.keys`)
  writeFileSync(path, (keys ?? []).join('\n'))
  const harness = await startHarness({
    routes: ROUTES,
    ...(keys !== null && { extra: `mcp_sessions: {keys_file: ${JSON.stringify(path)}}` }),
    certificatesOf: (file) => (keys === null ? NO_CERTIFICATES : readCertificates(file)),
  })
  harness.upstream.handle = (_, res) =>
    void res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' }).end('{}')
  replicas.push(harness)
  return harness
}
const CALL = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'open' } })
const call = async (to: Harness, session: string | null, claims: object = {}) =>
  to.send('POST /mcp', {
    body: CALL,
    token: await to.issuer.token({ ...claims }),
    fields: ['Content-Type: application/json', ...(session === null ? [] : [`Mcp-Session-Id: ${session}`])],
  })
const begin = async (at: Harness): Promise<string> => field(await call(at, null), 'mcp-session-id') ?? ''

describe('a session of MCP', () => {
  test('goes on at another replica and after a restart, where the file of keys is the same', async () => {
    const session = await begin(await startReplica([OLD]))
    const other = await startReplica([NEW, OLD])
    expect((await call(other, session)).status).toBe(200)
    expect(other.upstream.reached[0]?.rawHeaders).toContain('s1')
  })

  test.each([
    ['of another person', { sub: 'bob' }],
    ['by another client', { client_id: 'c2' }],
    ['in another organization', { org: 'other' }],
  ])('stays unknown to a request %s at each of them', async (_, claims) => {
    const session = await begin(await startReplica([OLD]))
    expect((await call(await startReplica([OLD]), session, claims)).status).toBe(404)
  })

  test.each<[string, readonly string[] | null]>([
    ['has another key', [NEW]],
    ['has no file of keys', null],
  ])('is unknown to a replica that %s', async (_, keys) => {
    const session = await begin(await startReplica([OLD]))
    expect((await call(await startReplica(keys), session)).status).toBe(404)
  })

  test.each([
    [['short'], /one key a line/],
    [[], /one key a line/],
  ])('has no keys where the file holds %j', (keys, message) => {
    writeFileSync(join(folder, 'k'), keys.join('\n'))
    const extra = `mcp_sessions: {keys_file: ${JSON.stringify(join(folder, 'k'))}}`
    const file = loadFile(
      routeFile(ROUTES, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'),
    )
    expect(() => readCertificates(file)).toThrow(message)
  })

  test.each([
    ['mcp_sessions: {}', 'mcp_sessions needs keys_file'],
    ['mcp_sessions: {keys_file: ""}', 'keys_file must not be empty'],
    ['mcp_sessions: x', 'mcp_sessions must be a map'],
  ])('%s is refused', (extra, message) => {
    const { issues } = parseRouteFile(routeFile(ROUTES, { extra }))
    expect(issues.map((issue) => issue.message).join()).toContain(message)
  })
})
