/** What a program needs below itself on each platform: Debian's packages and Node, as a root file system. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { isObject, type JsonObject, objectAt } from '../../../sidecar/injector/pod/json.ts'

/** `oci` is the name that images and Debian use, `npm` the one that npm and Node use. */
export const PLATFORMS = [
  { oci: 'amd64', npm: 'x64', multiarch: 'x86_64-linux-gnu', loader: 'ld-linux-x86-64.so.2', elf: 62 },
  { oci: 'arm64', npm: 'arm64', multiarch: 'aarch64-linux-gnu', loader: 'ld-linux-aarch64.so.1', elf: 183 },
] as const
export type Platform = (typeof PLATFORMS)[number]
export type DebianPackage = { readonly name: string; readonly version: string }

/** Node links these libraries, and reads the certificates. */
const DEBIAN = ['base-files', 'ca-certificates', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6'] as const
const SUITES = [
  'deb http://deb.debian.org/debian bookworm main',
  'deb http://deb.debian.org/debian-security bookworm-security main',
]
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Lays Debian's files and Node out in `root`; returns the packages. Throws when one cannot be fetched or its signature does not hold. */
export function layOutBase(root: string, platform: Platform, work: string): readonly DebianPackage[] {
  for (const path of [
    'usr/bin',
    'usr/lib',
    'usr/lib64',
    'etc/ssl/certs',
    'home/nonroot',
    'tmp',
    'var/lib/dpkg/status.d',
  ])
    mkdirSync(join(root, path), { recursive: true })
  for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name))
  const packages = fetchDebian(platform, join(work, `debian-${platform.oci}`)).map((file) => unpack(file, root))
  chmodSync(join(root, 'tmp'), 0o1777)
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
  )
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n')
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
  // Debian makes this file when the package is configured, which needs a shell.
  const authorities = join(root, 'usr/share/ca-certificates/mozilla')
  for (const name of readdirSync(authorities).toSorted())
    appendFileSync(join(root, 'etc/ssl/certs/ca-certificates.crt'), readFileSync(join(authorities, name)))
  mkdirSync(join(root, 'nodejs/bin'), { recursive: true })
  copyFileSync(nodeOf(platform, work), join(root, 'nodejs/bin/node'))
  chmodSync(join(root, 'nodejs/bin/node'), 0o755)
  return packages
}

/** apt verifies signatures and checksums; its state is a folder of its own, so that the machine's is not read or changed. */
function fetchDebian(platform: Platform, folder: string): readonly string[] {
  for (const path of ['state/lists/partial', 'cache/archives/partial', 'etc'])
    mkdirSync(join(folder, path), { recursive: true })
  const sources = SUITES.map((line) => line.replace('deb ', `deb [arch=${platform.oci} signed-by=${KEYRING}] `))
  writeFileSync(join(folder, 'etc/sources.list'), `${sources.join('\n')}\n`)
  writeFileSync(join(folder, 'status'), '')
  const settings = {
    'APT::Architecture': platform.oci,
    'APT::Architectures': platform.oci,
    'APT::Sandbox::User': 'root',
    'Dir::Etc::sourcelist': join(folder, 'etc/sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const apt = (...words: string[]): void =>
    void execFileSync('apt-get', [...options, ...words], { cwd: folder, stdio: 'pipe' })
  apt('-q', 'update')
  apt('-q', 'download', ...DEBIAN)
  const files = readdirSync(folder).filter((name) => name.endsWith('.deb'))
  if (files.length !== DEBIAN.length)
    throw new Error(`${files.length} of ${DEBIAN.length} Debian packages were fetched`)
  return files.toSorted().map((name) => join(folder, name))
}

/** Scanners find the package by its entry in `status.d`; manuals and translations are for people. */
function unpack(file: string, root: string): DebianPackage {
  const unread = [
    './usr/share/man',
    './usr/share/info',
    './usr/share/locale',
    './usr/share/lintian',
    './usr/share/doc/*/changelog*',
  ]
  const excludes = unread.map((path) => `--exclude=${path}`)
  const archive = execFileSync('dpkg-deb', ['--fsys-tarfile', file], { maxBuffer: 1 << 28 })
  const to = ['--extract', '--keep-directory-symlink', '--no-same-owner', '--directory', root]
  execFileSync('tar', [...to, ...excludes], { input: archive })
  const control = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' })
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? ''
  writeFileSync(join(root, 'var/lib/dpkg/status.d', field('Package')), control)
  return { name: field('Package'), version: field('Version') }
}

/** The path of the version of Node that this project is tested with. */
export function nodeOf(platform: Platform, work: string): string {
  const { version } = readJson('node_modules/node/package.json')
  return join(fetchPackage(`node-linux-${platform.npm}`, String(version), work), 'bin/node')
}

/** The folder of one version of a package of npm, which may be for another platform than this one. Throws when its bytes are not those that the lock file names. */
export function fetchPackage(name: string, version: string, work: string): string {
  const folder = join(work, name.replaceAll('/', '-'))
  if (existsSync(folder)) return join(folder, 'package')
  mkdirSync(folder, { recursive: true })
  const packed: unknown = JSON.parse(
    execFileSync('npm', ['pack', `${name}@${version}`, '--json', '--pack-destination', folder], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  const [made] = Array.isArray(packed) ? packed : []
  if (!isObject(made)) throw new Error(`npm did not pack ${name}@${version}`)
  const tarball = join(folder, String(made.filename))
  const digest = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  const locked = objectAt(
    objectAt(readJson('package-lock.json').packages, 'packages')[`node_modules/${name}`] ?? {},
    name,
  )
  for (const expected of [made.integrity, locked.integrity ?? digest])
    if (digest !== expected) throw new Error(`${name}@${version} has other bytes than it should: ${digest}`)
  execFileSync('tar', ['--extract', '--file', tarball, '--directory', folder, '--no-same-owner'])
  rmSync(tarball)
  return join(folder, 'package')
}

/** Throws when the file holds no object. */
export function readJson(path: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (isObject(value)) return value
  throw new Error(`${path} holds no object`)
}
