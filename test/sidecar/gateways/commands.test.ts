import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
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
  test('what gateway-config prints is accepted by check-gateway, also as one stream of two files', async () => {
    for (const gateway of ['envoy', 'traefik'] as const) {
      const routes = file(`${gateway}-routes.yaml`, routeFile(door(gateway), ''))
      const printed = await runCli(['gateway-config', gateway, routes, '--listen', '127.0.0.1:8000'])
      expect([printed.status, printed.stderr]).toEqual([0, ''])
      const checked = await runCli(['check-gateway', file(`${gateway}.yaml`, printed.stdout)])
      expect(checked).toMatchObject({ status: 0, stdout: '0 unsafe settings\n' })
    }
  })

  test('check-gateway ends with 1 when it found something, and prints it for programs, too', async () => {
    const routes = file('routes.yaml', routeFile(door('envoy'), ''))
    const { stdout } = await runCli(['gateway-config', 'envoy', routes])
    const bad = file('bad.yaml', stdout.replace('failure_mode_allow: false', 'failure_mode_allow: true'))
    const told = await runCli(['check-gateway', bad])
    expect(told.status).toBe(1)
    expect(told.stdout).toMatch(/bad\.yaml:\d+: fails_open: requests pass .*\n {4}set failure_mode_allow: false\n/)
    const json = await runCli(['check-gateway', '--json', bad])
    expect([json.status, JSON.parse(json.stdout).findings.length]).toEqual([1, 1])
  })

  test.each<[string, readonly string[], RegExp]>([
    ['an unknown gateway', ['gateway-config', 'haproxy', '/x'], /"haproxy" is not one of envoy, /],
    ['an address that is none', ['gateway-config', 'envoy', '/x', '--listen', 'x'], /--listen must be host:port/],
    ['a file that is not there', ['check-gateway', '/nowhere/at.all'], /does not exist/],
    ['a file that is nothing of ours', ['check-gateway', file('other.yaml', 'a: 1')], /is not a configuration of/],
  ])('%s ends with 64', async (_what, words, message) => {
    expect(await runCli(words)).toMatchObject({ status: 64, stderr: expect.stringMatching(message) })
  })

  test('a route file without a door for the gateway ends with 64', async () => {
    const routes = file('none.yaml', routeFile(door('envoy'), ''))
    const { status, stderr } = await runCli(['gateway-config', 'nginx', routes])
    expect([status, stderr]).toEqual([64, expect.stringContaining('no door for nginx')])
  })
})
