/** Control fields of gateways and doors from a client, through every gateway: they change neither verdict nor identity. */
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { routeFile } from '../sidecar/support/harness.ts'
import { createIssuer, issuerFetch } from '../support/peers/issuer.ts'
import { field, sendRaw } from '../support/peers/raw-http.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import { until } from '../support/until.ts'
import type { Binaries } from './binaries.ts'
import { compare, look, surely } from './compare.ts'
import { SECRET } from './gateways.ts'
import type { Tally } from './tally.ts'
import { openWorld, type Way, type World } from './world.ts'

const PACKED = Buffer.from(JSON.stringify([404, [], ''])).toString('base64url')
const FORGED: readonly (readonly [string, string])[] = [
  ...['X-Forwarded-Uri', 'X-Original-URI', 'X-Original-URL', 'X-Rewrite-URL', 'X-Envoy-Original-Path'].map(
    (name) => [name, '/open'] as const,
  ),
  ...['X-Forwarded-Method', 'X-Original-Method', 'X-HTTP-Method-Override'].map((name) => [name, 'OPTIONS'] as const),
  ...['X-Forwarded-Host', 'X-Original-Host', 'X-Host'].map((name) => [name, 'open.test'] as const),
  ...['X-Forwarded-Proto', 'X-Original-Scheme'].map((name) => [name, 'ftp'] as const),
  ...['X-Forwarded-For', 'X-Original-For', 'X-Real-Ip', 'Forwarded'].map((name) => [name, '198.51.100.7'] as const),
  ...['X-Auth-Subject', 'X_Auth_Subject', 'X-Auth-Organization', 'Remote-User', 'X-Forwarded-User'].map(
    (name) => [name, 'root'] as const,
  ),
  ['X-Portcullis-Caller', SECRET],
  ['X-Portcullis-Caller', 'x'],
  ['X-Portcullis-Refusal', PACKED],
  ['X-Envoy-Auth-Partial-Body', 'false'],
  ['X-Envoy-Auth-Headers-To-Remove', 'x-auth-subject'],
  ['Connection', 'close, X-Auth-Subject'],
  ['Connection', 'close, X-Portcullis-Caller, X-Forwarded-Uri, X-Original-URI'],
  ['User-Agent', 'kube-probe/1.33'],
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade\r\nUpgrade: websocket'],
  ['Connection', 'Upgrade\r\nUpgrade: h2c'],
  ['Connection', 'Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'],
]
const TARGETS = ['/docs/1', '/docs/2', '/open', '/nothing']

export async function sendForged(tally: Tally, binaries: Binaries): Promise<void> {
  const { world, token } = await openDocuments(binaries)
  try {
    for (const target of TARGETS)
      for (const forged of FORGED) {
        const lines = [
          `GET ${target} HTTP/1.1`,
          'Host: app.test',
          `Authorization: Bearer ${token}`,
          `${forged[0]}: ${forged[1]}`,
        ]
        const send = (port: number) => sendRaw(port, `${lines.join('\r\n')}\r\n\r\n`, { timeoutMs: 3_000 })
        for (const way of world.ways) {
          const about = { sent: [forged], routeOf: world.routeOf }
          const found = await surely(async (settleMs) =>
            compare(await look(world.inline, send, settleMs), await look(way, send, settleMs), about),
          )
          tally.add('forged control fields', way.name, found, `${target} with ${forged.join(': ')}`)
        }
      }
  } finally {
    await world.close()
  }
}

/** What each gateway answers when the PDP, and then the sidecar, is away. Any request that gets through counts as looser. */
export async function failAll(tally: Tally, binaries: Binaries): Promise<void> {
  const { world, token } = await openDocuments(binaries)
  const lines = ['GET /docs/1 HTTP/1.1', 'Host: app.test', `Authorization: Bearer ${token}`]
  const send = (port: number) => sendRaw(port, `${lines.join('\r\n')}\r\n\r\n`, { timeoutMs: 8_000 })
  const told: string[] = []
  const judgeAll = async (rows: string): Promise<void> => {
    for (const way of world.ways) {
      const { status, reached } = await look(way, send)
      const agreement = reached.length > 0 || status < 400 ? 'looser' : 'same'
      tally.add(rows, way.name, { agreement, why: `answered ${status}` }, rows)
      told.push(`${rows}: ${way.name} answers ${status}`)
    }
  }
  try {
    for (const way of world.ways) await passes(way, send)
    world.pdp.script = () => null
    await judgeAll('the PDP is silent')
    await world.pdp.stop()
    await judgeAll('the PDP is gone')
    for (const way of world.ways) await way.sidecar.close()
    await judgeAll('the sidecar is gone')
  } finally {
    await world.close()
  }
  console.log(`\n${told.join('\n')}`)
}

/** Without this the failures would show nothing. */
async function passes(way: Way, send: (port: number) => ReturnType<typeof sendRaw>): Promise<void> {
  await until(async () => {
    const answer = await send(way.port)
    return answer.status === 200 && field(answer, 'content-type') === 'application/json'
  })
}

async function openDocuments(binaries: Binaries): Promise<{ world: World; token: string }> {
  const issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
  const source = routeFile('GET /docs/{id}: viewer doc:{id}\nGET /open: public', {
    extra: 'hosts: [app.test, open.test]',
  })
  const { file } = parseRouteFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
  if (file === null) throw new Error('the routes are no route file')
  const world = await openWorld(file, {
    script: tuples(['alice viewer doc:1']),
    fetch: issuerFetch([issuer]),
    binaries,
  })
  return { world, token: await issuer.token() }
}
