/** The parts of a release that describe how it is run: chart, compose.yaml, units, schema and the Action. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { end } from '../image/jail.ts'
import { keycloakHome } from '../servers/keycloak.ts'
import { freePort } from '../support/free-port.ts'
import { runs } from '../support/programs/run.ts'
import { until } from '../support/until.ts'
import { at, CACHE, empty, ends, expectSame, goProgram, JOURNEY, Missing, OWN, REGISTRY, version } from './world.ts'

export async function chart(): Promise<string> {
  const [crane, helm] = [goProgram('crane'), goProgram('helm')]
  const port = await freePort()
  const registry = spawn(crane, ['registry', 'serve', '--address', `127.0.0.1:${port}`], { stdio: 'ignore' })
  ends.push(() => end(registry))
  await until(async () => (await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => null))?.ok === true)
  const layout = empty('layout-chart')
  execFileSync('tar', ['--extract', '--file', at('portcullis-chart-VERSION.oci.tar'), '--directory', layout])
  execFileSync(crane, ['push', layout, `127.0.0.1:${port}/charts/portcullis:${version}`], { stdio: 'pipe' })
  const pulled = empty('chart')
  const env = { ...process.env, HELM_CACHE_HOME: pulled, HELM_CONFIG_HOME: pulled, HELM_DATA_HOME: pulled }
  execFileSync(
    helm,
    [
      'pull',
      `oci://127.0.0.1:${port}/charts/portcullis`,
      '--version',
      version,
      '--plain-http',
      '--destination',
      pulled,
    ],
    { env, stdio: 'pipe' },
  )
  const values = resolve('charts/portcullis/ci/minimal-values.yaml')
  const text = execFileSync(
    helm,
    ['template', 'p', join(pulled, `portcullis-${version}.tgz`), '--values', values, '--kube-version', '1.36.0'],
    { env, encoding: 'utf8', maxBuffer: 1 << 26 },
  )
  const objects = parseAllDocuments(text).length
  const named = new Set([...text.matchAll(/image: "?([^"\s]+)/g)].map(([, image = '']) => image))
  for (const image of named)
    if (!new RegExp(`^${REGISTRY}/portcullis-(pdp|sidecar)@sha256:[0-9a-f]{64}$`).test(image))
      throw new Error(`the chart starts ${image}`)
  return `helm pull and helm template: ${objects} objects, ${named.size} images, each by digest`
}

/** compose.yaml as processes; see compose.ts. */
export function compose(profile: string): string {
  const program = join(CACHE, 'bin/compose-go')
  const words = ['build', '-trimpath', '-buildvcs=false', '-o', program, '.']
  if (!runs('go', words, join(import.meta.dirname, 'compose-go'))) throw new Missing('compose-go cannot be built here')
  if (process.getuid?.() !== 0) throw new Missing('only root can give it a network of its own')
  if (spawnSync('nginx', ['-v']).status !== 0) throw new Missing('nginx is not installed')
  const found = profile === '' ? null : keycloakHome()
  if (typeof found === 'string') throw new Missing(found)
  const apart = ['--net', '--mount', process.execPath, 'test/release/compose.ts']
  const { status, stdout, stderr } = spawnSync('unshare', [...apart, empty(`compose-${profile}`), program, profile], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  expectSame(stdout.trim(), JOURNEY)
  return `gated ${stdout.trim()}`
}

export function systemd(): string {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) throw new Missing('systemd-analyze is not installed')
  const to = empty('systemd')
  for (const name of readdirSync('deploy/systemd')) {
    const unit = readFileSync(join('deploy/systemd', name), 'utf8')
    writeFileSync(join(to, name), unit.replace('ExecStart=/usr/local/bin/portcullis', 'ExecStart=/bin/true'))
    execFileSync('systemd-analyze', ['verify', join(to, name)], { stdio: 'pipe' })
    const command = /^ExecStart=\/usr\/local\/bin\/portcullis (.*)$/m.exec(unit)?.[1]
    if (command === undefined) throw new Error(`${name} starts another program`)
    const words = [...command.split(' '), '--help']
    execFileSync(at(`portcullis-VERSION-linux-${OWN}`), words, {
      env: { HOME: to, PATH: '/usr/bin:/bin' },
      stdio: 'pipe',
    })
  }
  return 'both units are valid, and their commands exist in the single file'
}

export function schema(): string {
  const isValid = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(at('route-file.schema.json'), 'utf8')))
  const file = (last: string): unknown =>
    parse(
      `portcullis: v1\nresource: https://a.example\nhosts: [a.example]\nissuers: [{issuer: "https://i.example"}]\nupstream: http://127.0.0.1:1\npdp: {address: "127.0.0.1:1", insecure: true}\nroutes:\n  GET /x: public\n${last}`,
    )
  expectSame([isValid(file('')), isValid(file('routs: {}'))], [true, false])
  return 'takes a route file, and refuses one with a misspelt member'
}

export function action(): string {
  const to = empty('action')
  execFileSync('tar', ['--extract', '--file', at('portcullis-action-VERSION.tgz'), '--directory', to])
  expectSame(readdirSync(join(to, 'check')).toSorted(), ['action.yml', 'check.ts'])
  const { runs: how } = parse(readFileSync(join(to, 'check/action.yml'), 'utf8'))
  expectSame(how.using, 'composite')
  return 'a composite action with its program; test/actions plays it'
}
