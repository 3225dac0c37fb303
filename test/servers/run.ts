/**
 * `npm run servers [-- --short]`: real servers of other languages behind the sidecar, and their parsers beside it; signals of a
 * real Keycloak, and a receiver of others for ours (these alone with `-- --signals`). What cannot be installed is skipped, and says
 * why. Ends with `N passed, N failed, N skipped`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTarget } from '../../sidecar/request/target.ts'
import { readJson, readMember } from '../../sidecar/routes/json-body.ts'
import { readQuery } from '../../sidecar/routes/query.ts'
import { parseSource, type Source } from '../../sidecar/routes/template.ts'
import { pick, type Random, seeded } from '../sidecar/fuzz/targets.ts'
import { startHarness } from '../sidecar/support/harness.ts'
import { ask, openSession } from '../sidecar/support/http2-client.ts'
import { freePort } from '../support/free-port.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import { readArguments } from '../support/programs/arguments.ts'
import { APPS, type App } from './apps.ts'
import { testBodies } from './bodies.ts'
import { BODY_APPS } from './body-apps.ts'
import { askParser, JSON_PARSERS, type Parser, QUERY_PARSERS } from './parsers.ts'
import { testPathInfo } from './path-info.ts'
import { testReceiver } from './receiver.ts'
import { startServer } from './runtimes.ts'
import { testSignals } from './signals.ts'

const FLAG = { type: 'boolean', default: false } as const
const { short, signals } = readArguments(
  { options: { short: FLAG, signals: FLAG } },
  'npm run servers [-- --short | --signals]',
).values
const counts = { passed: 0, failed: 0, skipped: 0 }
function tell(outcome: keyof typeof counts, what: string, why = ''): void {
  counts[outcome] += 1
  console.log(`${outcome} ${what}${why === '' ? '' : `: ${why}`}`)
}

const PATH = '/public/admin/users'
const LIES = [
  ...[
    'SCRIPT_NAME: /public',
    'script_name: /public',
    'Script-Name: /public',
    'PATH_INFO: /admin/users',
    'X-Script-Name: /public',
  ],
  ...['X-Original-URL: /admin/users', 'X-Rewrite-URL: /admin/users', 'REMOTE_USER: root', 'Remote-User: root'],
  ...['X-Forwarded-Prefix: /public', 'Request-URI: /admin/users', 'Remote.User: root', 'HTTP_REMOTE_USER: root'],
]

/** By itself the server must believe something, else the sidecar's part would not be seen. */
async function serveBehind(app: App): Promise<void> {
  const runtime = app.seek()
  if (typeof runtime === 'string') return tell('skipped', app.name, runtime)
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-server-'))
  for (const [name, text] of Object.entries(app.files)) writeFileSync(join(folder, name), text)
  const port = await freePort()
  const child = await startServer(runtime, app.args(port), { cwd: folder, port })
  const h = await startHarness({ routes: 'GET /public/**: public', script: tuples([]) })
  const session = openSession(h.port)
  try {
    h.upstream.origin = `http://127.0.0.1:${port}`
    h.apply('GET /public/**: public\nGET /admin/**: scope admin')
    const request = (lie: string): string =>
      `GET ${PATH} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n${lie}\r\n\r\n`
    const believed: string[] = []
    const wrong: string[] = []
    for (const lie of LIES) {
      const direct = await sendRaw(port, request(lie))
      if (!isHonest(direct.body)) believed.push(lie)
      const behind = await sendRaw(h.port, request(lie))
      const [name = '', value = ''] = lie.split(': ')
      const over2 = await ask(session, `GET ${PATH}`, { headers: { [name.toLowerCase()]: value } })
      if (behind.status !== 200 || !isHonest(behind.body)) wrong.push(`${lie}: ${behind.status} ${behind.body}`)
      if (over2.status !== 200) wrong.push(`${lie} over HTTP/2: ${over2.status}`)
    }
    if (wrong.length > 0 || believed.length === 0) tell('failed', app.name, wrong.join('; ') || 'it believes nothing')
    else tell('passed', app.name, `believes ${believed.join(', ')} by itself, and nothing behind the sidecar`)
  } finally {
    session.destroy()
    child.kill('SIGKILL')
    await h.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const isHonest = (body: string): boolean => body.includes('public user=') && !body.includes('root')

const sourceOf = (text: string): Source => {
  const source = parseSource(text, [])
  if (typeof source === 'string') throw new Error(source)
  return source
}
const QUERY = sourceOf('query.org')
const BODY = sourceOf('body.org')
/** What the sidecar would judge; null: it refuses. */
function judged(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
const ofQuery = (text: string): string | null =>
  judged(() => (QUERY.from === 'query' ? readQuery(parseTarget(`/x?${text}`).query, QUERY) : ''))
const ofBody = (text: string): string | null =>
  judged(() => (BODY.from === 'body' ? readMember(readJson(Buffer.from(text)), BODY) : ''))

const PIECES = [
  '[',
  ']',
  '[]',
  '[x]',
  '.',
  ' ',
  '+',
  '%20',
  '%5B',
  '%5D',
  '_',
  '-',
  '$',
  '?',
  '%00',
  '%09',
  'O',
  'R',
  'G',
  'ſ',
  '%C5%BF',
  '\u212a',
  'x',
  '&',
  '=',
]
function mutate(random: Random, key: string): string {
  let text = key
  for (let left = 1 + Math.floor(random() * 3); left > 0; left -= 1) {
    const at = Math.floor(random() * (text.length + 1))
    text = text.slice(0, at) + pick(random, PIECES) + text.slice(at + Math.floor(random() * 1.5))
  }
  return text
}

function compare(parser: Parser, lines: readonly string[], judge: (line: string) => string | null): void {
  const read = askParser(parser, lines)
  if (typeof read === 'string') {
    tell('skipped', parser.name, read)
    return
  }
  const wrong = lines.filter((line, at) => {
    const own = judge(line)
    return own !== null && read[at] !== own
  })
  const others = read.filter((value) => value !== 'mine').length
  if (wrong.length > 0) tell('failed', parser.name, `reads otherwise: ${wrong.slice(0, 5).join('  ')}`)
  else tell('passed', parser.name, `${lines.length} texts, ${others} of them not read as their first value`)
}

const count = short ? 2_000 : 40_000
const random = seeded(7)
const queries = Array.from({ length: count }, () => {
  const pairs = ['org=mine', `${mutate(random, 'org')}=victim`]
  return (random() < 0.5 ? pairs : pairs.reverse()).join('&')
}).filter((text) => /^[\x21-\x7e]*$/.test(text))
const jsonBodies = Array.from({ length: count }, () => {
  const [at, other] = [mutate(random, 'org'), JSON.stringify('victim')]
  const members = ['"org":"mine"', `${JSON.stringify(at.replace(/%../g, ' '))}:${other}`]
  return `{${(random() < 0.5 ? members : members.reverse()).join(',')}}`
})
jsonBodies.push('{"org":"mine","ORG":"victim"}', '{"org":"mine","oRg":"victim"}')
if (!signals) {
  for (const app of APPS) await serveBehind(app)
  const { outcome, why } = await testPathInfo()
  tell(outcome, 'paths with scripts, of PHP', why)
  for (const app of BODY_APPS) {
    const bodies = await testBodies(app)
    tell(bodies.outcome, `bodies of every type, of ${app.name}`, bodies.why)
  }
  for (const parser of QUERY_PARSERS) compare(parser, queries, ofQuery)
  for (const parser of JSON_PARSERS) compare(parser, jsonBodies, ofBody)
}
for (const { outcome, what, why } of await testReceiver(!short)) tell(outcome, what, why)
// Its first start takes minutes.
if (!short) for (const { outcome, what, why } of await testSignals()) tell(outcome, what, why)
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exit(counts.failed > 0 ? 1 : 0)
