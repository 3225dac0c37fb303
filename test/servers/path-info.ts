/** PHP's own server finds scripts within paths: none of them may be reached around the check of its route. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHarness } from '../sidecar/support/harness.ts'
import { freePort } from '../support/free-port.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import { php, startServer } from './runtimes.ts'

/** A front controller, a script of its own, and a page of a folder. */
const FILES = {
  'index.php': `<?php
$path = $_SERVER['PATH_INFO'] ?? parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
echo str_starts_with(strtolower($path), '/admin') ? 'secret' : 'public';`,
  'report.php': "<?php echo 'secret';",
  'docs/index.html': 'secret',
}
const ROUTES = `GET /**: public
GET /admin/**: scope admin
GET /report.php: scope admin
GET /docs/index.html: scope admin`
const TARGETS = [
  '/index.php/admin/users',
  '/index.php/ADMIN/users',
  '/index.php/admin/users.json',
  '/index.php/index.php/admin/users',
  '/report.php/x',
  '/report.php/x/y.css',
  '/docs/',
  '/docs',
  '/index.php/about',
  '/about',
]

export type Reported = { readonly outcome: 'passed' | 'failed' | 'skipped'; readonly why: string }

export async function testPathInfo(): Promise<Reported> {
  const runtime = php()
  if (typeof runtime === 'string') return { outcome: 'skipped', why: runtime }
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-php-'))
  mkdirSync(join(folder, 'docs'))
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
  const port = await freePort()
  const child = await startServer(runtime, ['-S', `127.0.0.1:${port}`, '-t', folder], { cwd: folder, port })
  const h = await startHarness({ routes: ROUTES, script: tuples([]) })
  try {
    h.upstream.origin = `http://127.0.0.1:${port}`
    h.apply(ROUTES)
    const open: string[] = []
    const wrong: string[] = []
    let served = 0
    for (const target of TARGETS) {
      const request = `GET ${target} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`
      if ((await sendRaw(port, request)).body.includes('secret')) open.push(target)
      const { status, body } = await sendRaw(h.port, request)
      if (body.includes('secret')) wrong.push(target)
      if (status === 200) served += 1
    }
    if (wrong.length > 0) return { outcome: 'failed', why: `reached around their check: ${wrong.join(', ')}` }
    if (open.length === 0 || served === 0) return { outcome: 'failed', why: 'nothing was there to be found' }
    return { outcome: 'passed', why: `by itself it shows ${open.join(', ')}, and none of them behind the sidecar` }
  } finally {
    child.kill('SIGKILL')
    await h.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
