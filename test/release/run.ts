/**
 * `npm run test:release`: builds dist/release, installs each part of it into an empty place, and lets it do its main job there:
 * npm from a registry of this machine, images from a registry of this machine, the chart by Helm, the single file without Node.
 * What cannot be had here is skipped, and says why. `-- --built` takes the dist/release that is there. Ends with `N passed, N failed, N skipped`.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { PLATFORMS } from '../../bin/dev/release/platform.ts'
import { startEmbeddedPostgres } from '../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { end, startIn } from '../image/jail.ts'
import { freePort } from '../support/free-port.ts'
import { readArguments } from '../support/programs/arguments.ts'
import { runs } from '../support/programs/run.ts'
import { until } from '../support/until.ts'
import { action, chart, compose, schema, systemd } from './descriptions.ts'
import { journey, started, succeed, walk } from './journey.ts'
import {
  at,
  CACHE,
  empty,
  ends,
  expectSame,
  folder,
  goProgram,
  JOURNEY,
  Missing,
  OWN,
  REGISTRY,
  RELEASE,
  VERDACCIO,
  version,
} from './world.ts'

const { built } = readArguments(
  { options: { built: { type: 'boolean', default: false } } },
  'npm run test:release [-- --built]',
).values
const counts = { passed: 0, failed: 0, skipped: 0 }
async function step(name: string, play: () => Promise<string> | string): Promise<void> {
  const startedMs = performance.now()
  const said = (outcome: keyof typeof counts, text: string): void => {
    counts[outcome] += 1
    console.log(`${outcome} ${name}: ${text} (${((performance.now() - startedMs) / 1_000).toFixed(0)} s)`)
  }
  try {
    said('passed', await play())
  } catch (err) {
    if (err instanceof Missing) said('skipped', err.message)
    else said('failed', err instanceof Error ? (err.stack ?? err.message) : String(err))
  }
}
function checksums(): string {
  execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: RELEASE })
  const named = readFileSync(at('SHA256SUMS'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.slice(66))
  expectSame(
    named,
    readdirSync(RELEASE)
      .filter((name) => name !== 'SHA256SUMS')
      .toSorted(),
  )
  return `${named.length} files`
}

async function npmPackages(): Promise<string> {
  const verdaccio = join(CACHE, 'verdaccio')
  if (!existsSync(join(verdaccio, 'node_modules/verdaccio'))) {
    mkdirSync(verdaccio, { recursive: true })
    // A dependency names this version by a tag, which mirrors need not have.
    writeFileSync(join(verdaccio, 'package.json'), '{"private": true, "overrides": {"node-fetch": "2.6.7"}}')
    if (
      !runs(
        'npm',
        ['install', '--silent', '--no-audit', '--no-fund', '--prefix', verdaccio, `verdaccio@${VERDACCIO}`],
        CACHE,
      )
    )
      throw new Missing('verdaccio cannot be installed here')
  }
  const home = empty('verdaccio')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  writeFileSync(
    join(home, 'config.yaml'),
    JSON.stringify({
      storage: join(home, 'storage'),
      uplinks: { npmjs: { url: upstream } },
      packages: { 'portcullis*': { access: '$all', publish: '$all' }, '**': { access: '$all', proxy: 'npmjs' } },
      log: { type: 'stdout', format: 'json', level: 'error' },
    }),
  )
  const registry = spawn(
    process.execPath,
    [
      join(verdaccio, 'node_modules/verdaccio/bin/verdaccio'),
      '--config',
      join(home, 'config.yaml'),
      '--listen',
      `127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  ends.push(() => end(registry))
  await until(async () => (await fetch(`${url}-/ping`).catch(() => null))?.ok === true)
  // npm wants a token, and this registry takes any.
  writeFileSync(join(home, '.npmrc'), `registry=${url}\n//127.0.0.1:${port}/:_authToken=any\n`)
  const npm = (cwd: string, ...words: string[]): string =>
    execFileSync('npm', [...words, '--userconfig', join(home, '.npmrc')], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  for (const name of ['portcullis-VERSION.tgz', 'portcullis-server-VERSION.tgz']) npm(home, 'publish', at(name))
  const installed = empty('npm')
  writeFileSync(join(installed, 'package.json'), '{"private": true, "type": "module"}')
  npm(installed, 'install', '--no-audit', '--no-fund', 'portcullis', 'portcullis-server')
  writeFileSync(join(installed, 'embed.mjs'), EMBED)
  expectSame(
    execFileSync(process.execPath, ['embed.mjs'], { cwd: installed, encoding: 'utf8' }).trim(),
    'false true false',
  )
  const bin = (name: string): readonly string[] => [join(installed, 'node_modules/.bin', name)]
  // npm's links start `node`, which must be new enough.
  const env = { PATH: `${join(process.cwd(), 'node_modules/.bin')}:${process.env.PATH}`, HOME: installed }
  const statuses = await journey({
    pdp: started(bin('portcullis-pdp'), installed),
    sidecar: started(bin('portcullis-sidecar'), installed),
    command: bin('portcullis'),
    env,
    folder: installed,
    seen: installed,
  })
  expectSame(statuses, JOURNEY)
  return `npm install; in process false, true, false; gated ${statuses.join(', ')}; ${await walk(join(installed, 'node_modules/.bin'))}`
}

/** The package's main job: decisions in the process of an application. */
const EMBED = `
import { createPdp, memoryStore, user } from 'portcullis'
const pdp = createPdp({ store: memoryStore() })
await pdp.putOrganization('acme', { name: 'Acme' })
const can = () => pdp.can('acme', user('alice'), 'viewer', 'invoice:42')
const before = await can()
await pdp.write('acme', { write: ['invoice:42#viewer@user:alice'] })
const granted = await can()
await pdp.write('acme', { delete: ['invoice:42#viewer@user:alice'] })
console.log(before, granted, await can())
`

/** The images, from a registry, in root file systems of their own. */
async function images(): Promise<string> {
  const crane = goProgram('crane')
  const port = await freePort()
  const registry = spawn(crane, ['registry', 'serve', '--address', `127.0.0.1:${port}`], { stdio: 'ignore' })
  ends.push(() => end(registry))
  await until(async () => (await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => null))?.ok === true)
  const roots: { [image: string]: string } = {}
  for (const image of ['pdp', 'sidecar']) {
    const layout = empty(`layout-${image}`)
    execFileSync('tar', ['--extract', '--file', at(`portcullis-${image}-VERSION.oci.tar`), '--directory', layout])
    const reference = `127.0.0.1:${port}/portcullis-${image}:${version}`
    execFileSync(crane, ['push', layout, reference], { stdio: 'pipe' })
    execFileSync(crane, ['validate', '--remote', reference], { stdio: 'pipe' })
    for (const { oci, npm, elf } of PLATFORMS) {
      const root = empty(`${image}-${oci}`)
      const files = execFileSync(crane, ['export', '--platform', `linux/${oci}`, reference, '-'], {
        maxBuffer: 1 << 30,
      })
      execFileSync('tar', ['--extract', '--directory', root], { input: files })
      for (const path of ['nodejs/bin/node', 'usr/lib']) expectSame(machinesIn(join(root, path)), elf)
      if (npm === process.arch) roots[image] = root
    }
  }
  const secrets = empty('secrets')
  const database = await startEmbeddedPostgres({ dataDirectory: join(secrets, 'database') })
  try {
    const env = {
      PORTCULLIS_ADMIN_SECRET: 'an-admin-secret-of-some-length',
      PORTCULLIS_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      DATABASE_URL: database.connectionString,
    }
    const routes = join(roots.sidecar ?? '', 'etc/portcullis')
    for (const root of Object.values(roots)) mkdirSync(join(root, 'run/portcullis'), { recursive: true })
    mkdirSync(routes, { recursive: true })
    const inImage = (image: string) => (words: readonly string[], given: NodeJS.ProcessEnv) => {
      const { Entrypoint, Env, User } = imageConfig(crane, `127.0.0.1:${port}/portcullis-${image}:${version}`)
      expectSame(User, '65532:65532')
      const own = Object.fromEntries(
        Env.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      )
      return startIn(roots[image] ?? '', [...Entrypoint, ...words], {
        ...given,
        ...own,
        // The way to `chroot` itself.
        PATH: `${own.PATH}:/usr/sbin`,
      })
    }
    const statuses = await journey({
      pdp: inImage('pdp'),
      sidecar: inImage('sidecar'),
      command: [join(process.cwd(), 'bin/portcullis')],
      env: { ...env, PORTCULLIS_CLIENT_SECRET: env.PORTCULLIS_ADMIN_SECRET, PATH: process.env.PATH },
      folder: routes,
      seen: '/etc/portcullis',
    })
    expectSame(statuses, JOURNEY)
    return `pushed, pulled, run as 65532 on ${process.arch}: gated ${statuses.join(', ')}; ELF files of the other platform are its own`
  } finally {
    await database.stop()
  }
}

type ImageConfig = { readonly Entrypoint: readonly string[]; readonly Env: readonly string[]; readonly User: string }
function imageConfig(crane: string, reference: string): ImageConfig {
  const platform = PLATFORMS.find(({ npm }) => npm === process.arch)?.oci
  return JSON.parse(execFileSync(crane, ['config', '--platform', `linux/${platform}`, reference], { encoding: 'utf8' }))
    .config
}

/** `e_machine` of each ELF file (System V ABI, section 4.1): each number once. */
function machinesIn(path: string): readonly number[] {
  const names = readdirSync(path.endsWith('node') ? join(path, '..') : path, { recursive: true, withFileTypes: true })
  const found = names
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const head = Buffer.alloc(20)
      const file = openSync(join(entry.parentPath, entry.name), 'r')
      readSync(file, head)
      closeSync(file)
      return head.readUInt32BE(0) === 0x7f454c46 ? [head.readUInt16LE(18)] : []
    })
  return [...new Set(found)]
}

/** Without Node and npm on the way to programs, in an empty home. */
async function singleFile(): Promise<string> {
  const platform = OWN
  const home = empty('single')
  const file = join(home, 'portcullis')
  cpSync(at(`portcullis-VERSION-linux-${platform}`), file)
  const env = { HOME: home, PATH: '/usr/bin:/bin' }
  const cut = join(home, 'cut')
  writeFileSync(cut, readFileSync(file).subarray(0, 30_000_000), { mode: 0o755 })
  const refused = spawnSync(cut, ['--version'], { env, encoding: 'utf8' })
  expectSame([refused.status, refused.stderr.includes('not whole')], [1, true])
  const other = spawnSync('sh', [at(`portcullis-VERSION-linux-${platform === 'amd64' ? 'arm64' : 'amd64'}`)], {
    env,
    encoding: 'utf8',
  })
  expectSame([other.status, other.stderr.includes('this machine is')], [1, true])
  const starts = await Promise.all(
    [1, 2, 3].map(() => succeed(spawn(file, ['--version'], { env, stdio: ['ignore', 'pipe', 'pipe'] }))),
  )
  expectSame(
    starts.map((text) => text.trim()),
    [version, version, version],
  )
  expectSame(readdirSync(join(home, '.cache/portcullis')).length, 1)
  for (const name of ['portcullis-pdp', 'portcullis-sidecar']) symlinkSync('portcullis', join(home, name))
  expectSame((await succeed(started([join(home, 'portcullis-sidecar')], home)(['--version'], env))).trim(), version)
  const statuses = await journey({
    pdp: started([file, 'pdp'], home),
    sidecar: started([file, 'sidecar'], home),
    command: [file],
    env,
    folder: home,
    seen: home,
  })
  expectSame(statuses, JOURNEY)
  return `gated ${statuses.join(', ')}; ${await walk(home)}; a cut file and one for another machine are refused`
}

if (!built) {
  const { status } = spawnSync(process.execPath, ['bin/dev/release/release.ts', '--dry-run', '--registry', REGISTRY], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) process.exit(1)
}
mkdirSync(CACHE, { recursive: true })
try {
  await step('checksums', checksums)
  await step('route-file.schema.json', schema)
  await step('the Action', action)
  await step('single file', singleFile)
  await step('npm packages', npmPackages)
  await step('images', images)
  await step('chart', chart)
  await step('systemd units', systemd)
  await step('compose', () => compose(''))
  await step('compose with Keycloak', () => compose('keycloak'))
} finally {
  for (const ending of ends.toReversed()) await ending()
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exitCode = counts.failed === 0 ? 0 : 1
