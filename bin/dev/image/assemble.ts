/** Lays out one program as its image holds it: the code that it can reach, the packages that this code imports, and nothing else. */
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, normalize, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { isObject, type JsonObject, objectAt } from '../../../sidecar/injector/pod/json.ts'

/** The programs that an image holds, and the command line. */
export const IMAGES = ['pdp', 'sidecar'] as const
export type Part = (typeof IMAGES)[number] | 'command'
const ENTRY: { readonly [part in Part]: string } = {
  pdp: 'pdp/bin.js',
  sidecar: 'sidecar/bin.js',
  command: 'pdp/client-bin.js',
}
/** What the console shows as help. */
export const BOOKS = ['docs/*.md', 'docs/routes-reference.yaml', 'docs/pictures/*.svg', 'charts/portcullis/README.md']
export type Assembly = { readonly files: readonly string[]; readonly packages: readonly string[] }

/** Licences go wherever the code goes. */
const LICENCE = /(?:^|[\\/])(?:licen[cs]e|notice|copying)[^\\/]*$/i
/** Of a package: what no program reads when it runs. */
const UNREAD =
  /(?:\.(?:md|markdown|map|[cm]?ts|tsbuildinfo|test\.[cm]?js)|(?:^|[\\/])(?:test|tests|docs|example|examples|benchmarks?|\.github))$/i

/** `dist` is what `tsc -p tsconfig.build.json` emits. Throws when an import does not resolve. */
export function assemble(part: Part, { dist, folder }: { dist: string; folder: string }): Assembly {
  const { files, packages } = reach(ENTRY[part], dist)
  for (const file of files) copy(join(dist, file), join(folder, file))
  // Files beside the code that it reads when it runs.
  const root = dirname(ENTRY[part])
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (/\.(?:sql|json|html|css)$|(?:^|\/)assets\//.test(name)) copy(join(root, name), join(folder, root, name))
  }
  for (const name of part === 'pdp' ? globSync(BOOKS) : []) copy(name, join(folder, name))
  // Programs of pages are served with what they import.
  const served = packagesIn(join(folder, root)).filter((name) => !packages.has(name))
  const closure = packagesOf(new Set([...packages, ...served]))
  for (const path of closure) {
    cpSync(path, join(folder, path), { recursive: true, filter: (source) => keep(source, path) })
  }
  const { name, version, license } = readJson('package.json')
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ name, version, license, type: 'module' }, null, 2)}\n`,
  )
  return { files, packages: closure }
}

/** Nested packages are copied under their own name, if they are needed. */
function keep(source: string, root: string): boolean {
  const inside = source.slice(root.length)
  return !inside.split(sep).includes('node_modules') && (!UNREAD.test(inside) || LICENCE.test(inside))
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to)
}

function reach(entry: string, dist: string): { files: readonly string[]; packages: ReadonlySet<string> } {
  const files = [entry]
  const packages = new Set<string>()
  for (const file of files) {
    const text = readFileSync(join(dist, file), 'utf8')
    const { importedFiles } = ts.preProcessFile(text, true, true)
    for (const fileName of [...importedFiles.map((imported) => imported.fileName), ...threadsIn(text)]) {
      if (isBuiltin(fileName)) continue
      if (!fileName.startsWith('.')) {
        packages.add(nameOf(fileName))
        continue
      }
      const found = normalize(join(dirname(file), fileName))
      if (!files.includes(found)) files.push(found)
    }
  }
  return { files, packages }
}

/** Threads are started by the address of a file beside the code, not by an import. */
export const threadsIn = (text: string): readonly string[] =>
  [...text.matchAll(/new URL\(\s*`\.\/([\w-]+)\$\{/g)].map(([, name]) => `./${name}.js`)

/** Names of the packages that any code in a folder imports. */
export function packagesIn(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
  const named = files.flatMap((name) => {
    const { importedFiles } = ts.preProcessFile(readFileSync(join(folder, name), 'utf8'), true, true)
    return importedFiles.map(({ fileName }) => fileName).filter((file) => !file.startsWith('.') && !isBuiltin(file))
  })
  return [...new Set(named.map(nameOf))].toSorted()
}

const nameOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

/** Folders of the packages and of everything that they depend on, as Node finds them. Throws when one is not installed. */
function packagesOf(names: ReadonlySet<string>): readonly string[] {
  const found = [...names].map((name) => locate(name, '.', true)).filter((path) => path !== null)
  for (const path of found) {
    const { dependencies, optionalDependencies, peerDependencies } = readJson(join(path, 'package.json'))
    const optional = objectAt(optionalDependencies, 'optionalDependencies')
    const needed = Object.keys(objectAt(dependencies, 'dependencies')).filter((name) => !Object.hasOwn(optional, name))
    const wished = [...Object.keys(optional), ...Object.keys(objectAt(peerDependencies, 'peerDependencies'))]
    // Types are for those who compile.
    const read = (name: string): boolean => !name.startsWith('@types/') && name !== 'undici-types'
    for (const [name, required] of [
      ...needed.map((n) => [n, true] as const),
      ...wished.map((n) => [n, false] as const),
    ]) {
      const next = read(name) ? locate(name, path, required) : null
      if (next !== null && !found.includes(next)) found.push(next)
    }
  }
  return found.toSorted()
}

function locate(name: string, from: string, required: boolean): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name)
    if (existsSync(join(path, 'package.json'))) return path
    if (folder === '.') break
  }
  if (required) throw new Error(`${name}, which ${from} needs, is not installed`)
  return null
}

function readJson(path: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (isObject(value)) return value
  throw new Error(`${path} holds no object`)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const parts = [...IMAGES, 'command'] as const
  const part = parts.find((name) => name === process.argv[2])
  const folder = process.argv[3]
  if (part === undefined || folder === undefined) throw new Error(`usage: assemble.ts ${parts.join('|')} FOLDER`)
  const { files, packages } = assemble(part, { dist: 'dist', folder })
  console.log(`${part}: ${files.length} files, ${packages.length} packages`)
}
