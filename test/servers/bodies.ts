/** Bottle reads every body as a form, whatever its type and method: none of them may say another value than the query that was checked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHarness } from '../sidecar/support/harness.ts'
import { tuples } from '../sidecar/support/pdp.ts'
import { sendRaw } from '../sidecar/support/raw-http.ts'
import { freePort } from '../support/free-port.ts'
import type { Reported } from './path-info.ts'
import { bottle, startServer } from './runtimes.ts'

const APP = `
import sys
from bottle import request, route, run
@route('/reports', method=['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
def reports(): return 'served ' + request.params.org
run(host='127.0.0.1', port=int(sys.argv[1]), quiet=True)
`
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const ROUTES = METHODS.map((method) => `${method} /reports: member org:{query.org}`).join('\n')
const TYPES = ['text/plain', 'application/octet-stream', 'application/xml', 'application/grpc', 'image/png', 'a/b', '']
const FORM = 'org=victim'
const JSON_FORM = '{"a":"&org=victim&"}'

export async function testBodies(): Promise<Reported> {
  const runtime = bottle()
  if (typeof runtime === 'string') return { outcome: 'skipped', why: runtime }
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bodies-'))
  writeFileSync(join(folder, 'app.py'), APP)
  const port = await freePort()
  const child = await startServer(runtime, ['app.py', String(port)], { cwd: folder, port })
  const h = await startHarness({ routes: ROUTES, script: tuples(['alice member org:mine']) })
  try {
    h.upstream.origin = `http://127.0.0.1:${port}`
    h.apply(ROUTES)
    const token = await h.issuer.token()
    const request = (method: string, type: string, body: string): string =>
      `${method} /reports?org=mine HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n${
        type === '' ? '' : `Content-Type: ${type}\r\n`
      }Content-Length: ${body.length}\r\n\r\n${body}`
    const cases = METHODS.flatMap((method) => [
      ...TYPES.map((type) => ({ method, type, body: FORM })),
      { method, type: 'application/json', body: JSON_FORM },
    ])
    const misled: string[] = []
    const wrong: string[] = []
    for (const { method, type, body } of cases) {
      const text = request(method, type, body)
      if ((await sendRaw(port, text)).body === 'served victim') misled.push(`${method} ${type}`)
      if ((await sendRaw(h.port, text)).body.includes('victim')) wrong.push(`${method} ${type}`)
    }
    const good = await sendRaw(h.port, request('POST', 'application/json', '{"a":1}'))
    if (wrong.length > 0)
      return { outcome: 'failed', why: `served another value than was checked: ${wrong.join(', ')}` }
    if (misled.length === 0 || good.body !== 'served mine') return { outcome: 'failed', why: 'it serves nothing' }
    return {
      outcome: 'passed',
      why: `${misled.length} of ${cases.length} bodies mislead it by itself, and none behind the sidecar`,
    }
  } finally {
    child.kill('SIGKILL')
    await h.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
