/**
 * `npm run release`: everything that a release holds, in dist/release. It uploads nothing: the workflow does, and only these files.
 * With `--dry-run` it asks for no tag and no clean tree. `--registry ghcr.io/acme` is where the chart finds the images.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { IMAGES } from '../image/assemble.ts'
import { buildImages } from '../image/dockerfile.ts'
import { billOfMaterials } from '../image/sbom.ts'
import { packAll } from '../pack.ts'
import { writeChart } from './chart.ts'
import { CONFIG, LAYER, type Layer, layerOf, sha256, writeArchive } from './oci.ts'
import { type DebianPackage, layOutBase, PLATFORMS, readJson } from './platform.ts'
import { writeSingleFile } from './single-file.ts'

const TO = 'dist/release'

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean' }, registry: { type: 'string', default: '' } } })
const version = String(readJson('package.json').version)
if (!values['dry-run']) refuseUnlessTagged()
// Root file systems are read by others than their maker.
process.umask(0o022)
const work = mkdtempSync(join(tmpdir(), 'portcullis-release-'))
try {
  await make()
} finally {
  rmSync(work, { recursive: true, force: true })
}

async function make(): Promise<void> {
  rmSync(TO, { recursive: true, force: true })
  run('node', ['bin/dev/build.ts'])
  mkdirSync(TO, { recursive: true })
  await packAll(TO)
  const digests = writeImages()
  writeChart(TO, work, { registry: values.registry, digests })
  for (const platform of PLATFORMS)
    writeSingleFile(join(TO, `portcullis-${version}-linux-${platform.oci}`), platform, work, version)
  cpSync('sidecar/route-file/route-file.schema.json', join(TO, 'route-file.schema.json'))
  tarOf(join(TO, `portcullis-action-${version}.tgz`), '.github/actions', 'check')
  const names = readdirSync(TO).toSorted()
  const sums = names.map((name) => `${sha256(readFileSync(join(TO, name))).slice('sha256:'.length)}  ${name}`)
  writeFileSync(join(TO, 'SHA256SUMS'), `${sums.join('\n')}\n`)
  for (const name of names) console.log(`${(statSync(join(TO, name)).size / 1e6).toFixed(2).padStart(8)} MB  ${name}`)
}

/** Returns the digest of each image by its name. */
function writeImages(): { readonly [repository: string]: string } {
  const built = buildImages(join(work, 'stages'), { install: false })
  const bases = PLATFORMS.map((platform) => {
    const root = join(work, `base-${platform.oci}`)
    const debian = layOutBase(root, platform, work)
    return { platform, debian, layer: layerOf(root, join(work, `base-${platform.oci}.tgz`)) }
  })
  const digests = IMAGES.map((image) => {
    const stage = built.get(image)
    if (stage === undefined) throw new Error(`the Dockerfile makes no ${image}`)
    const name = `portcullis-${image}`
    const app = layerOf(stage.root, join(work, `${image}.tgz`))
    const annotations = {
      'org.opencontainers.image.title': name,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    }
    const manifests = bases.map(({ platform, debian, layer }) => {
      writeBill(join(TO, `${name}-${version}-${platform.oci}.cdx.json`), join(stage.root, 'app'), debian)
      const content = configOf(stage.config, platform.oci, [layer, app], annotations)
      const layers = [layer, app].map(({ file }) => ({ mediaType: LAYER, file }))
      return {
        platform: { os: 'linux', architecture: platform.oci },
        config: { mediaType: CONFIG, content },
        layers,
        annotations,
      }
    })
    return [name, writeArchive(join(TO, `${name}-${version}.oci.tar`), version, manifests)]
  })
  return Object.fromEntries(digests)
}

type Started = ReturnType<typeof buildImages> extends ReadonlyMap<string, { readonly config: infer C }> ? C : never

function configOf(started: Started, architecture: string, layers: readonly Layer[], labels: object): object {
  const env = { PATH: '/nodejs/bin:/usr/bin:/bin', SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt', ...started.env }
  return {
    architecture,
    os: 'linux',
    config: {
      User: started.user,
      WorkingDir: started.folder,
      Entrypoint: started.entrypoint,
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ExposedPorts: Object.fromEntries(started.ports.map((port) => [`${port}/tcp`, {}])),
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diff }) => diff) },
  }
}

/** The npm packages of the program, Debian's packages and Node. */
function writeBill(file: string, app: string, debian: readonly DebianPackage[]): void {
  const lock = readJson('node_modules/.package-lock.json')
  const bill = billOfMaterials(app, lock)
  const node = String(readJson('node_modules/node/package.json').version)
  const system = [
    ...debian.map(({ name, version: at }) => ({
      type: 'library',
      name,
      version: at,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(at)}`,
    })),
    { type: 'application', name: 'node', version: node, purl: `pkg:generic/node@${node}` },
  ]
  const components = Array.isArray(bill.components) ? bill.components : []
  writeFileSync(file, `${JSON.stringify({ ...bill, components: [...components, ...system] }, null, 2)}\n`)
}

function tarOf(file: string, parent: string, name: string): void {
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  execFileSync('tar', ['--create', '--gzip', ...order, '--file', file, '--directory', parent, name])
}

/** The tag, the packages, the chart and the changelog name one version, and what is built is what was committed. */
function refuseUnlessTagged(): void {
  const git = (...words: string[]): string => execFileSync('git', words, { encoding: 'utf8' }).trim()
  const chart = readFileSync('charts/portcullis/Chart.yaml', 'utf8')
  const wrong = [
    git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`) ? null : `HEAD has no tag v${version}`,
    git('status', '--porcelain') === '' ? null : 'there are changes that are not committed',
    chart.includes(`\nversion: ${version}\n`) ? null : `Chart.yaml has another version than ${version}`,
    chart.includes(`\nappVersion: ${version}\n`) ? null : `Chart.yaml has another appVersion than ${version}`,
    new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\]`, 'm').test(readFileSync('CHANGELOG.md', 'utf8'))
      ? null
      : `CHANGELOG.md has no [${version}]`,
  ].filter((reason) => reason !== null)
  if (wrong.length === 0) return
  console.error(`This is no release: ${wrong.join('; ')}.\nTo try it: npm run release -- --dry-run`)
  process.exit(1)
}

function run(command: string, words: readonly string[]): void {
  const { status } = spawnSync(resolve('node_modules/.bin', command), words, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} failed`)
}
