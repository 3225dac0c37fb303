import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/peers/sidecar-cli.ts'
import { PROGRAM_ENV } from '../support/programs/environment.ts'
import { until } from '../support/until.ts'
import { routeFile } from './support/harness.ts'

const MAIN = fileURLToPath(new URL('../../sidecar/main.ts', import.meta.url))
let folder: string
let good: string
let bad: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-cli-'))
  good = write(
    'good.yaml',
    `${routeFile('GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}\nPOST /invoices: creator organization:{body.org}')}tests:
  - {request: GET /invoices/42, as: {sub: alice, org: acme}, expect: {route: "GET /invoices/{id}", asks: ["viewer invoice:42"]}}
  - {request: GET /public/../x, expect: {status: 400}}
  - {request: GET /invoices/42, expect: {route: "GET /invoices/{id}", status: 401}}
`,
  )
  bad = write('bad.yaml', routeFile('GET /a: viewer\nGET /b: {all: []}'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text.replace('UPSTREAM', 'http://127.0.0.1:9').replace('PDP', '127.0.0.1:9'))
  return path
}

function cli(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { ...PROGRAM_ENV, ...env },
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, stdout, stderr }
}

describe('check', () => {
  test.each([
    ['GET /docs/**: public', 1],
    ['GET a.test/docs/**: public\nGET /docs: public', 1],
    ['GET /docs/**: public\nPOST /docs: signed_in', 0],
    ['GET /docs/**: public\nGET /{page}: public', 0],
    ['GET /docs/**: public\nGET /**: public', 0],
    ['GET /**: public', 0],
  ])('warns where a path without its slash has no route: %j', async (routes, count) => {
    const { stdout } = await runCli(['check', write('rest.yaml', routeFile(routes))])
    expect(stdout.match(/\/docs matches no route, since/g) ?? []).toHaveLength(count)
  })

  test('says that a file is good', async () => {
    expect(await runCli(['check', good])).toMatchObject({
      status: 0,
      stdout: `${good}: warning: GET /public matches no route, since GET /public/** begins behind the slash: add GET /public if it is to be served
${good}: valid, 3 routes, 3 tests, hosts: app.test
`,
      stderr: '',
    })
  })

  test('takes the PDP and the issuers of the platform, from a file or as the text itself', async () => {
    const own = /^(?:issuers|pdp):.*\n/gm
    const routes = write('routes-only.yaml', routeFile('GET /a: public').replaceAll(own, ''))
    const says = JSON.stringify({ pdp: { address: 'pdp:9090' }, issuers: [{ issuer: 'https://id.example.com' }] })
    for (const platform of [write('platform.json', says), says])
      expect((await runCli(['check', routes, '--platform', platform])).status).toBe(0)
    expect(await runCli(['check', routes])).toMatchObject({ status: 64, stderr: expect.stringContaining('needs pdp') })
    expect(await runCli(['check', good, '--platform', says])).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('issuers is for the platform to say'),
    })
    expect(await runCli(['check', routes, '--platform', 'nowhere.json'])).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('--platform: nowhere.json'),
    })
  })

  test('warns of a route that servers could run for another one', async () => {
    const near = write('near.yaml', routeFile('GET /{page}: public\nGET /admin/: scope admin'))
    const { status, stdout } = await runCli(['check', near])
    expect([status, stdout.split('\n')[0]]).toEqual([
      0,
      expect.stringContaining(`${near}: warning: GET /admin matches`),
    ])
  })

  test('says every mistake with its place, and ends with 64', async () => {
    const { status, stderr } = await runCli(['check', bad])
    expect([status, stderr.trim().split('\n')]).toEqual([
      64,
      [
        `${bad}:8:11: "viewer" is not "public", "signed_in", "<relation> <type>:<id>", "permission <key>", "entitlement <key>" or "scope <name>"`,
        `${bad}:9:12: all must have at least one check`,
      ],
    ])
  })

  test('of a file that is not there is one line', async () => {
    const { status, stderr } = await runCli(['check', 'nowhere.yaml'])
    expect([status, stderr.trim().split('\n').length]).toEqual([64, 1])
    expect(stderr).toContain('nowhere.yaml')
  })
})

test('routes lists the more specific path first', async () => {
  expect((await runCli(['routes', good])).stdout.trim().split('\n')).toEqual([
    'GET /public/**      public',
    'GET /invoices/{id}  checked',
    'POST /invoices      checked',
  ])
})

describe('test', () => {
  test('runs the tests of the file and names the routes that they leave out', async () => {
    expect(await runCli(['test', good])).toMatchObject({
      status: 0,
      stdout: 'no test reaches GET /public/**\nno test reaches POST /invoices\n3 passed, 0 failed\n',
    })
  })

  test('ends with 1 when a test fails, and says what was there instead', async () => {
    const source = `${routeFile('GET /a/{id}: viewer a:{id}')}tests:
  - {request: GET /a/1, as: {sub: alice}, expect: {asks: ["viewer a:2"]}}
`
    const path = write('failing.yaml', source)
    expect(await runCli(['test', path])).toMatchObject({
      status: 1,
      stdout: `${path}:10: GET /a/1: asked viewer a:1, not viewer a:2\n0 passed, 1 failed\n`,
    })
  })
})

describe('explain', () => {
  test.each([
    [
      ['GET', '/invoices/7', '--claim', 'sub=alice'],
      'route       GET /invoices/{id}\nparameter   id = 7\nasks        viewer invoice:7\n',
    ],
    [['GET', '/public/x'], 'route       GET /public/**\npublic      forwarded without asking the PDP\n'],
    [
      ['POST', '/invoices', '--claim', 'sub=a', '--body', '{"org":"acme"}'],
      'route       POST /invoices\nasks        creator organization:acme\n',
    ],
  ])('%j', async (args, stdout) => {
    expect(await runCli(['explain', ...args, '--file', good])).toMatchObject({ status: 0, stdout })
  })

  test.each([
    [['GET', '/nothing'], 'route       none\ndenied      404 route_unknown: no route has this path\n'],
    [
      ['get', 'http://other.test/public/x'],
      'route       none\ndenied      421 host_unknown: the host other.test is not served; served hosts: app.test; to serve it, add it to hosts in the route file\n',
    ],
    [
      ['GET', '/invoices/7'],
      'route       GET /invoices/{id}\nparameter   id = 7\ndenied      401 token_missing: this route needs an access token\n',
    ],
    [
      ['POST', '/invoices', '--claim', 'sub=a', '--body', '{}'],
      'route       POST /invoices\ndenied      400 request_invalid: body.org must occur exactly once\n',
    ],
  ])('%j is refused, and ends with 1', async (args, stdout) => {
    expect(await runCli(['explain', ...args, '--file', good])).toMatchObject({ status: 1, stdout })
  })
})

describe('run', () => {
  test.each([
    [['run', '--lisen', ':1'], {}, "unknown option '--lisen'"],
    [['fly'], {}, "unknown command 'fly'"],
    [['chekc', 'good.yaml'], {}, 'Did you mean check?'],
    [['--lisen', ':1'], {}, "unknown option '--lisen'"],
    [['run'], {}, 'The route file portcullis.yaml does not exist; portcullis-sidecar init writes a first one'],
    [['run', '--file', 'good.yaml', '--listen', 'x'], {}, '--listen must be host:port'],
    [['run'], { PORTCULLIS_SIDECAR_LISTN: ':1' }, 'PORTCULLIS_SIDECAR_LISTN is not a known setting'],
    [['run'], { PORTCULLIS_LOG_LEVEL: 'loud' }, 'PORTCULLIS_LOG_LEVEL must be one of'],
    [['run'], { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, 'disables all certificate checks'],
  ])('%j with %j ends with 64: %s', async (args, env, message) => {
    const { status, stderr } = await runCli(args, { env })
    expect([status, stderr.includes(message)]).toEqual([64, true])
  })

  test('drain says that no sidecar listens at its path', async () => {
    const { status, stderr } = await runCli(['drain', '--control', '/nowhere/sidecar.sock'])
    expect([status, stderr]).toEqual([
      1,
      'no sidecar listens at /nowhere/sidecar.sock; is it running, with the same PORTCULLIS_SIDECAR_CONTROL?\n',
    ])
  })

  test('with a port in use is one line', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = taken.address()
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    const { status, stderr } = cli([
      'run',
      '--file',
      good,
      '--listen',
      `127.0.0.1:${port}`,
      '--admin-listen',
      '127.0.0.1:0',
    ])
    taken.close()
    expect([status, stderr]).toEqual([
      1,
      `The sidecar cannot listen on 127.0.0.1:${port}: another process uses this port. Choose another address by PORTCULLIS_SIDECAR_LISTEN\n`,
    ])
  })

  test('serves until SIGTERM, and says on the admin port what is missing', async () => {
    const child = spawn(
      process.execPath,
      [MAIN, 'run', '--file', good, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      {
        env: PROGRAM_ENV,
      },
    )
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    await until(() => output.includes('"event":"listening"'))
    const { data, admin } = JSON.parse(output.split('\n').find((line) => line.includes('listening')) ?? '{}')
    expect((await fetch(`http://${data}/public/x`)).status).toBe(421)
    const probe = async (path: string): Promise<number> => (await fetch(`http://${admin}${path}`)).status
    expect([await probe('/livez'), await probe('/startz'), await probe('/readyz'), await probe('/drain')]).toEqual([
      200, 200, 503, 404,
    ])
    // fetch repeats a request that was answered with 421 (Fetch standard, section 4.3).
    expect(await (await fetch(`http://${admin}/metrics`)).text()).toMatch(
      /portcullis_sidecar_requests_total\{route="",decision="deny",outcome="host_unknown"\} [12]\n/,
    )
    child.kill('SIGTERM')
    expect(await new Promise((resolve) => child.on('exit', resolve))).toBe(0)
  })
})

test('help names every command', async () => {
  const { status, stdout } = await runCli(['--help'])
  expect(status).toBe(0)
  expect(stdout).toContain('explain')
  for (const name of ['drain', 'injector', 'check-cluster']) expect(stdout).toContain(`  ${name}`)
})

test.each([
  ['chekc', 'error: there is no command "chekc"; did you mean "check"?'],
  ['nonsense', 'error: there is no command "nonsense"'],
])('help of %s, which is no command, says so', async (word, message) => {
  for (const words of [
    ['help', word],
    [word, '--help'],
    [word, 'more', '-h'],
  ]) {
    const { status, stdout, stderr } = await runCli(words)
    expect([status, stdout, stderr]).toEqual([64, '', `${message}\nTry: portcullis-sidecar --help\n`])
  }
})
