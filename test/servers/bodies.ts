/**
 * Servers take a value from the body instead of the query that was checked: each type of body that the books name, by every
 * method, and none of them may say another value behind the sidecar.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHarness } from '../sidecar/support/harness.ts'
import { freePort } from '../support/free-port.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import type { BodyApp } from './body-apps.ts'
import type { Reported } from './path-info.ts'
import { startServer } from './runtimes.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const ROUTES = METHODS.map((method) => `${method} /reports: member org:{query.org}`).join('\n')
const FORM = 'org=victim'
/** Each also says `org=victim` to some reader. */
const BODIES: readonly (readonly [type: string, body: string])[] = [
  ...['application/x-www-form-urlencoded', 'text/plain', 'application/octet-stream', 'application/xml'].map(
    (type) => [type, FORM] as const,
  ),
  ...['application/grpc', 'image/png', 'a/b', ''].map((type) => [type, FORM] as const),
  ['application/json', '{"a":"&org=victim&"}'],
  ['application/json', '{"org":"victim"}'],
  ['text/json', '{"org":"victim"}'],
  ['application/vnd.api+json', '{"org":"victim"}'],
  ['multipart/form-data; boundary=b', '--b\r\nContent-Disposition: form-data; name="org"\r\n\r\nvictim\r\n--b--\r\n'],
  ['application/x-yaml', 'org: victim'],
  ['application/yaml', 'org: victim'],
  ['application/toml', 'org = "victim"'],
  ['application/xml', '<question><org>victim</org></question>'],
  ['text/xml', '<question><org>victim</org></question>'],
  ['application/x-msgpack', '\x81\xa3org\xa6victim'],
  ['application/msgpack', '\x81\xa3org\xa6victim'],
]

export async function testBodies(app: BodyApp): Promise<Reported> {
  const runtime = app.seek()
  if (typeof runtime === 'string') return { outcome: 'skipped', why: runtime }
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bodies-'))
  for (const [name, text] of Object.entries(app.files)) writeFileSync(join(folder, name), text)
  const port = await freePort()
  const child = await startServer(runtime, app.args(port), { cwd: folder, port })
  const h = await startHarness({ routes: ROUTES, script: tuples(['alice member org:mine']) })
  try {
    h.upstream.origin = `http://127.0.0.1:${port}`
    h.apply(ROUTES)
    return await play(app, { direct: port, behind: h.port, token: await h.issuer.token() })
  } finally {
    child.kill('SIGKILL')
    await h.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function play(
  { takes }: BodyApp,
  { direct, behind, token }: { readonly direct: number; readonly behind: number; readonly token: string },
): Promise<Reported> {
  const request = (method: string, type: string, body: string): Buffer =>
    Buffer.from(
      `${method} /reports?org=mine HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n${
        type === '' ? '' : `Content-Type: ${type}\r\n`
      }Content-Length: ${body.length}\r\n\r\n${body}`,
      'latin1',
    )
  const misled = new Set<string>()
  const wrong: string[] = []
  for (const method of METHODS) {
    for (const [type, body] of BODIES) {
      const sent = request(method, type, body)
      if ((await sendRaw(direct, sent)).body.includes('victim')) misled.add(type)
      if ((await sendRaw(behind, sent)).body.includes('victim')) wrong.push(`${method} ${type}`)
    }
  }
  const good = await sendRaw(behind, request('POST', 'application/json', '{"a":1}'))
  if (wrong.length > 0) return { outcome: 'failed', why: `served another value than was checked: ${wrong.join(', ')}` }
  if (!good.body.includes('served mine')) return { outcome: 'failed', why: `serves nothing: ${good.status}` }
  const unread = takes.filter((type) => !misled.has(type))
  if (unread.length > 0) return { outcome: 'failed', why: `does not read what the books say: ${unread.join(', ')}` }
  const names = [...misled].map((type) => (type === '' ? 'no type' : type))
  return { outcome: 'passed', why: `takes ${names.join(', ') || 'nothing'} by itself, and nothing behind the sidecar` }
}
