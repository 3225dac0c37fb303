/** Files that the pages load, unchanged; and the editor with its packages, in which only the URLs of imports are changed. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { type Branding, readableOn } from '../../shared/pages/brand.ts'
import { RequestProblem } from '../serve/http/status.ts'

const FILES: { readonly [file: string]: string } = {
  'console.css': 'text/css; charset=utf-8',
  'live.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}
const EDITOR = 'editor.js'
/** An import or export at the beginning of a line, up to the name of the other module. */
const SPECIFIER = /^((?:import|export)\b[^'";]*?\bfrom\s*)(['"])([^'"]+)\2/gm
const BRIEFLY = 'public, max-age=300'
const FOR_EVER = 'public, max-age=31536000, immutable'

type Module = { readonly text: Buffer; readonly zipped: Buffer }

/** The darkest background behind links on light pages, and the lightest on dark pages. */
const BACKGROUNDS = { light: '#eaf0ee', dark: '#331816' }

const brandStyle = ({ color }: Branding): string => {
  if (color === undefined) return ''
  const { light, dark } = readableOn(color, BACKGROUNDS)
  return `:root{--link:light-dark(${light},${dark});--mark:light-dark(${light},${dark})}\n`
}

export function addAssets(scope: FastifyInstance, branding: Branding): void {
  const style = brandStyle(branding)
  scope.get('/console/assets/brand.css', async (_request, reply) =>
    reply.header('cache-control', BRIEFLY).type('text/css; charset=utf-8').send(style),
  )
  for (const [file, type] of Object.entries(FILES)) {
    const content = readFileSync(new URL(`./assets/${file}`, import.meta.url))
    scope.get(`/console/assets/${file}`, async (_request, reply) =>
      reply.header('cache-control', BRIEFLY).type(type).send(content),
    )
  }
  let editor: Promise<ReadonlyMap<string, Module>> | null = null
  scope.get<{ Params: { '*': string } }>('/console/assets/editor/*', async (request, reply) => {
    const file = request.params['*']
    // The editor's files are read when somebody opens it for the first time.
    editor ??= editorModules().catch((err: unknown) => {
      // The next request tries again.
      editor = null
      throw err
    })
    const found = (await editor).get(file)
    if (found === undefined) throw new RequestProblem('route_unknown', 'The editor has no such module.')
    const isZipped = request.headers['accept-encoding']?.includes('gzip') === true
    if (isZipped) reply.header('content-encoding', 'gzip')
    // The URL of a package contains its version, so the file never changes.
    return reply
      .headers({ vary: 'accept-encoding', 'cache-control': file === EDITOR ? BRIEFLY : FOR_EVER })
      .type('text/javascript; charset=utf-8')
      .send(isZipped ? found.zipped : found.text)
  })
}

/** The modules by file name. Throws if a package is not installed. */
async function editorModules(): Promise<ReadonlyMap<string, Module>> {
  const modules = new Map<string, Module>()
  const wanted = new Map([[EDITOR, fileURLToPath(new URL(`./assets/${EDITOR}`, import.meta.url))]])
  // The loop also reaches modules that are added while it runs.
  for (const [file, path] of wanted) {
    const source = await readFile(path, 'utf8')
    const files = new Map<string, string>()
    for (const [, , , specifier = ''] of source.matchAll(SPECIFIER)) {
      const found = await locate(specifier, path)
      files.set(specifier, found.file)
      wanted.set(found.file, found.path)
    }
    const addressed = source.replaceAll(
      SPECIFIER,
      (_, before: string, quote: string, specifier: string) => `${before}${quote}./${files.get(specifier)}${quote}`,
    )
    const text = Buffer.from(addressed)
    modules.set(file, { text, zipped: await promisify(gzip)(text) })
  }
  return modules
}

/** The module that a package offers to `import`, as its package.json says. */
async function locate(specifier: string, from: string): Promise<{ readonly file: string; readonly path: string }> {
  const about = findPackageJSON(specifier, from)
  if (about === undefined) throw new Error(`${specifier}, which the editor needs, is not installed`)
  const { version, exports }: PackageJson = JSON.parse(await readFile(about, 'utf8'))
  return { file: `${specifier.replaceAll(/[^\w-]/g, '-')}@${version}.js`, path: join(dirname(about), exports.import) }
}
type PackageJson = { readonly version: string; readonly exports: { readonly import: string } }
