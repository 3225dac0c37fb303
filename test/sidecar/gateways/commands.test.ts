import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runCli } from '../../support/peers/sidecar-cli.ts'
import { DOORS, routeFile } from './printed.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-gateways-'))
afterAll(() => rmSync(folder, { recursive: true }))
function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const door = (profile: string): string => `doors: [{profile: ${profile}, ${DOORS['a certificate']}}]\n`

describe('on the command line', () => {
  test('gateway-config prints several files as one stream, each under its name', async () => {
    const routes = file('traefik-routes.yaml', routeFile(door('traefik'), ''))
    const { status, stdout, stderr } = await runCli(['gateway-config', 'traefik', routes, '--listen', '127.0.0.1:8000'])
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^# traefik\.yaml\n[\s\S]*\n {4}address: 127\.0\.0\.1:8000\n[\s\S]*---\n# dynamic\.yaml\n/)
    expect(parseAllDocuments(stdout).map(({ errors }) => errors)).toEqual([[], []])
  })

  test.each<[string, readonly string[], RegExp]>([
    ['an unknown gateway', ['gateway-config', 'haproxy', '/x'], /"haproxy" is not one of envoy, /],
    ['an address that is none', ['gateway-config', 'envoy', '/x', '--listen', 'x'], /--listen must be host:port/],
    ['a route file that is not there', ['gateway-config', 'envoy', '/nowhere/at.all'], /does not exist/],
  ])('%s ends with 64', async (_what, words, message) => {
    expect(await runCli(words)).toMatchObject({ status: 64, stderr: expect.stringMatching(message) })
  })

  test('a route file without a door for the gateway ends with 64', async () => {
    const routes = file('none.yaml', routeFile(door('envoy'), ''))
    const { status, stderr } = await runCli(['gateway-config', 'nginx', routes])
    expect([status, stderr]).toEqual([64, expect.stringContaining('no door for nginx')])
  })
})
