/** A gateway brings a path that could be read in very many ways to a real process with the heap that the chart gives. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { createIssuer } from '../../support/peers/issuer.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { RESOURCE } from '../support/harness.ts'
import { type SidecarProcess, startKeyServer, startProcess } from '../support/process.ts'
import { linesOf, SECRET } from './door-harness.ts'

const MAIN = fileURLToPath(new URL('../../../sidecar/main.ts', import.meta.url))
const PROFILES = ['nginx', 'traefik', 'caddy'] as const
const ROUTES = `routes:
  GET /**: scope a
  GET /public/**: public
  GET /admin/index.html: scope b
  GET /admin.html: scope b
  GET /robots.txt: public
`
const COSTLY = [
  ...['/a.pl'.repeat(1_600), '/a.pl'.repeat(1_200), '/.pl'.repeat(2_000)],
  ...[
    `/public${'/a.pl'.repeat(1_600)}`,
    '/admin/a.pl'.repeat(100),
    '/admin/a.pl'.repeat(150),
    '/robots/a.pl'.repeat(200),
  ],
  ...[`/${'a.pl%2F'.repeat(300)}x`, `/${':$'.repeat(4_000)}%E2%80%A8`, `/${'.'.repeat(8_000)}x`],
]

let sidecar: SidecarProcess
const ports = new Map<string, number>()
const closers: (() => unknown)[] = []
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-doors-'))
  writeFileSync(join(folder, 'secret'), SECRET)
  const issuer = await createIssuer({ issuer: 'https://as.test', audience: RESOURCE, clock: Date.now })
  const keys = await startKeyServer([issuer.jwks])
  const pdp = await startScriptedPdp(tuples([]))
  for (const profile of PROFILES) ports.set(profile, await freePort())
  const doors = [...ports].map(([profile, port]) => ({
    profile,
    listen: `127.0.0.1:${port}`,
    secret_file: join(folder, 'secret'),
  }))
  sidecar = await startProcess({
    command: [process.execPath, '--max-semi-space-size=8', '--max-old-space-size=128', MAIN],
    routeFile: `portcullis: v1
resource: ${RESOURCE}
issuers: [{issuer: "${issuer.issuer}", jwks_uri: "${keys.urls[0]}"}]
upstream: http://127.0.0.1:1
pdp: {address: "${pdp.address}", insecure: true}
doors: ${JSON.stringify(doors)}
${ROUTES}`,
  })
  closers.push(
    () => sidecar.stop(),
    keys.close,
    () => pdp.stop(),
    () => rmSync(folder, { recursive: true }),
  )
}, 60_000)
afterAll(async () => {
  for (const close of closers) await close()
})

test.each(PROFILES)('%s gets a refusal of each costly path, and goes on being answered', async (profile) => {
  const ask = async (target: string) =>
    sendRaw(
      ports.get(profile) ?? 0,
      `${linesOf(profile, { method: 'GET', target, host: 'app.test' }).join('\r\n')}\r\n\r\n`,
    )
  const statuses: number[] = []
  for (const target of COSTLY) statuses.push((await ask(target)).status)
  for (const status of statuses) expect([400, 401, 403, 414]).toContain(status)
  expect((await ask('/public/x')).status).toBe(200)
  expect((await fetch(`http://${sidecar.admin}/livez`)).status).toBe(200)
})
