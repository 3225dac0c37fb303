/** Takes packages into a tarball, as the parts of them that the code reaches: an application does not install the rest. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import { isObject } from '../../sidecar/injector/pod/json.ts'

const FOLDER = 'bundled'
/** How each emitted module names a package: `from '…'`, `import('…')` or `import '…'`. */
const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"]+)\2/g

/** Bundles what the modules in `folder` import of these packages, and lets the modules import the bundle. */
export async function bundle(folder: string, packages: readonly string[]): Promise<void> {
  const isBundled = (specifier: string): boolean =>
    packages.some((name) => specifier === name || specifier.startsWith(`${name}/`))
  const modules = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
  const names = new Map<string, string>()
  for (const file of modules) {
    const text = readFileSync(join(folder, file), 'utf8')
    const changed = text.replace(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
      if (!isBundled(specifier)) return whole
      const name = specifier.replace('@', '').replaceAll('/', '-')
      names.set(name, specifier)
      const path = relative(dirname(file), join(FOLDER, `${name}.js`))
      return `${before}${quote}${path.startsWith('.') ? path : `./${path}`}${quote}`
    })
    if (changed !== text) writeFileSync(join(folder, file), changed)
  }
  const found = await write(join(folder, FOLDER), Object.fromEntries(names))
  writeFileSync(join(folder, FOLDER, 'NOTICE.md'), notice(found))
}

/** The folders of the packages whose code is in the bundle. */
async function write(dir: string, input: { readonly [name: string]: string }): Promise<readonly string[]> {
  mkdirSync(dir, { recursive: true })
  const build = await rolldown({ input: { ...input }, platform: 'node', treeshake: { moduleSideEffects: false } })
  const { output } = await build.write({
    ...{ dir, format: 'esm', sourcemap: true, entryFileNames: '[name].js', chunkFileNames: 'part-[name].js' },
  })
  const sources = output.flatMap((part) => (part.type === 'chunk' ? Object.keys(part.modules) : []))
  const folders = sources.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(folders)].toSorted()
}

/** Names, versions and licences of what is in the bundle, with the licence texts that the packages bring. */
function notice(folders: readonly string[]): string {
  const parts = folders.map((folder) => {
    const about: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (!isObject(about)) throw new Error(`${folder}/package.json holds no object`)
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
    const text = file === undefined ? [] : ['', '```', readFileSync(join(folder, file), 'utf8').trim(), '```']
    return [`## ${about.name} ${about.version}`, '', `Licence: ${about.license}.`, ...text, ''].join('\n')
  })
  const own = existsSync('LICENSE') ? ' The text of Apache-2.0 is in LICENSE beside this folder.' : ''
  return `# What is bundled here\n\nThe parts of these packages that the library uses, unchanged.${own}\n\n${parts.join('\n')}`
}
