/** The package `portcullis` as applications install it: small, typed, and good on each Node that it names. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { layOut } from '../../bin/dev/pack.ts'

/** Below the repository, so that it finds the packages that are installed there. */
let root: string
let library: string
beforeAll(async () => {
  mkdirSync('node_modules/.cache', { recursive: true })
  root = mkdtempSync('node_modules/.cache/library-')
  library = join(root, 'node_modules', 'portcullis')
  await layOut('portcullis', library)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Other Nodes of this machine that the package is meant for. */
function nodes(): readonly string[] {
  const others = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  const found = others.filter((path) => existsSync(path) && !path.includes('node_modules'))
  const recent = found.filter((path) => {
    const [major = 0, minor = 0] = execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' })
      .split('.')
      .map(Number)
    return major > 20 || (major === 20 && minor >= 19)
  })
  return [...new Set([process.execPath, ...recent].map((path) => realpathSync(path)))]
}

describe.each(nodes())('on %s', (node) => {
  const run = (name: string, text: string): string => {
    writeFileSync(join(root, name), text)
    return execFileSync(node, [name], { cwd: root, encoding: 'utf8' })
  }

  test('asks a PDP that runs elsewhere, and nothing is allowed where there is none', () => {
    const out = run(
      'client.mjs',
      `import { connectPdp } from 'portcullis/client'
       const pdp = connectPdp({ address: '127.0.0.1:1', tls: null })
       console.log(await pdp.can('token', 'viewer', 'doc:1').catch(({ name, code }) => name + ' ' + code))
       pdp.close()`,
    )
    expect(out).toBe('DecisionError pdp_unavailable\n')
  })

  test('is imported, compiles a model in its thread, writes and answers', () => {
    const relations = Array.from({ length: 300 }, (_, i) => `    define r${i}: [user] or viewer`).join('\\n')
    const out = run(
      'use.mjs',
      `import { createPdp, memoryStore, user } from 'portcullis'
       const pdp = createPdp({ store: memoryStore() })
       await pdp.putOrganization('acme', { name: 'Acme' })
       await pdp.putManifest('a', { model: 'model\\n  schema 1.1\\ntype user\\ntype doc\\n  relations\\n    define viewer: [user]\\n${relations}\\n' })
       await pdp.write('acme', { write: ['doc:1#viewer@user:ann'] })
       console.log(await pdp.can('acme', user('ann'), 'r7', 'doc:1'), await pdp.can('acme', user('bob'), 'r7', 'doc:1'))
       await pdp.close()`,
    )
    expect(out).toBe('true false\n')
  })

  test('evaluates a condition with the bundled evaluator', () => {
    const out = run(
      'condition.mjs',
      `import { createPdp, memoryStore, user } from 'portcullis'
       const pdp = createPdp({ store: memoryStore() })
       await pdp.putOrganization('acme', { name: 'Acme' })
       await pdp.putManifest('a', { model: 'model\\n  schema 1.1\\ntype user\\ntype doc\\n  relations\\n    define viewer: [user with near]\\ncondition near(address: ipaddress, name: string) {\\n  address.in_cidr("10.0.0.0/8") && name.matches("^a+$")\\n}\\n' })
       await pdp.write('acme', { write: [{ object: 'doc:1', relation: 'viewer', subject: 'user:ann', condition: { name: 'near' } }] })
       for (const context of [{ address: '10.1.2.3', name: 'aaa' }, { address: '192.0.2.1', name: 'aaa' }, { address: '10.1.2.3', name: 'b' }]) {
         const { permissions: [one] } = await pdp.decide({ organization: 'acme', subject: user('ann'), permissions: [{ relation: 'viewer', resource: 'doc:1' }], context })
         console.log(one.allowed)
       }
       await pdp.close()`,
    )
    expect(out).toBe('true\nfalse\nfalse\n')
  })

  test('is required from CommonJS', () => {
    const text = `for (const path of ['', '/express', '/fastify', '/hono', '/http']) console.log(Object.keys(require('portcullis' + path)).join())`
    expect(run('use.cjs', text)).toMatch(/createPdp.*\nexpressGuard.*\nfastifyGuard\nhonoGuard\nhttpGuard/s)
  })

  test('makes types from a model, and says where a model is wrong', () => {
    const bin = join('node_modules', 'portcullis', 'pdp', 'client-bin.js')
    writeFileSync(
      join(root, 'good.fga'),
      'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user, user:*]\n    define see: viewer\n',
    )
    expect(execFileSync(node, [bin, 'types', 'good.fga'], { cwd: root, encoding: 'utf8' })).toMatch(
      `  doc: {\n    viewer: \`user:\${string}\` | 'user:*'\n    see: never\n  }`,
    )
    writeFileSync(join(root, 'bad.fga'), 'model\n  schema 1.1\ntype doc\n  relations\n    define viewer: [nobody]\n')
    expect(() => execFileSync(node, [bin, 'types', 'bad.fga'], { cwd: root, stdio: 'pipe' })).toThrow(
      /bad\.fga:\d+:\d+: /,
    )
  })
})

/** What a TypeScript program of a user says to these files. */
function complaints(files: { readonly [name: string]: string }, options: ts.CompilerOptions = {}): readonly string[] {
  const paths = Object.entries(files).map(([name, text]) => {
    writeFileSync(join(root, name), text)
    return join(root, name)
  })
  const program = ts.createProgram(paths, {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts'],
    types: ['node'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    ...options,
  })
  return ts
    .getPreEmitDiagnostics(program)
    .filter(({ file }) => file === undefined || file.fileName.includes('library-'))
    .map(({ file, start = 0, messageText }) => {
      const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1
      return `${file === undefined ? '' : file.fileName.replace(/.*library-[^/]*\//, '')}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    })
}

const MODEL = `type Model = { user: Record<never, never>; invoice: { viewer: \`user:\${string}\` | \`group:\${string}#member\`; see: never } }\n`
const TYPED = `import { createPdp, memoryStore, user } from 'portcullis'
${MODEL}const pdp = createPdp<Model>({ store: memoryStore() })\n`

describe('types', () => {
  test('name no package that an application must install', () => {
    const declarations = readdirSync(library, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.d.ts'),
    )
    const entries = [
      'pdp/index.d.ts',
      ...['express', 'fastify', 'hono', 'http'].map((one) => `pdp/engine/middleware/${one}.d.ts`),
    ]
    const reached = [...entries]
    const named = new Set<string>()
    for (const file of reached) {
      expect(declarations).toContain(file)
      for (const { fileName } of ts.preProcessFile(readFileSync(join(library, file), 'utf8')).importedFiles) {
        const next = join(dirname(file), fileName).replace(/\.[jt]s$/, '.d.ts')
        if (!fileName.startsWith('.')) named.add(fileName)
        else if (!reached.includes(next)) reached.push(next)
      }
    }
    expect([...named].filter((name) => !name.startsWith('node:'))).toEqual([])
  })

  test('let a model decide what compiles, in modules and in CommonJS', () => {
    const good = `await pdp.can('acme', user('a'), 'viewer', 'invoice:1')
await pdp.can('acme', user('a'), 'invoices:approve', 'app:billing')
await pdp.decide({ organization: 'acme', subject: user('a'), permissions: [{ relation: 'see', resource: 'invoice:1' }] })
await pdp.write('acme', { write: ['invoice:1#viewer@user:a', 'group:g#member@user:a', { object: 'invoice:1', relation: 'viewer', subject: 'user:b' }] })\n`
    const bad = [
      "await pdp.can('acme', user('a'), 'veiwer', 'invoice:1')",
      "await pdp.can('acme', user('a'), 'viewer', 'invioce:1')",
      "await pdp.decide({ organization: 'a', subject: user('a'), permissions: [{ relation: 'x', resource: 'invoice:1' }] })",
      "await pdp.write('acme', { write: ['invoice:1#see@user:a'] })",
      "await pdp.write('acme', { write: ['invoice:1#viewer@group:g'] })",
      "await pdp.write('acme', { write: ['invoice:1#viewer@user:a'] }, { if: [{ tuple: 'x', exists: true }] })",
    ]
    const found = complaints({
      'good.mts': `${TYPED}${good}`,
      'common.cts': "import portcullis = require('portcullis')\nportcullis.user('a')\n",
      ...Object.fromEntries(bad.map((line, i) => [`bad-${i}.mts`, `${TYPED}${line}\n`])),
    })
    expect(found.map((line) => line.replace(/:.*/s, ''))).toEqual(bad.map((_, i) => `bad-${i}.mts`))
  })

  test('are right for bundlers', () => {
    const bundler = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }
    expect(complaints({ 'bundled.ts': `${TYPED}export { pdp, user }\n` }, bundler)).toEqual([])
  })
})

/** The examples in the documentation of what each entry exports, by entry and name. */
function documented(entries: readonly string[]): readonly (readonly [entry: string, name: string, example: string])[] {
  const program = ts.createProgram(
    entries.map((entry) => join(library, entry)),
    { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, types: [], noLib: true },
  )
  const checker = program.getTypeChecker()
  return entries.flatMap((entry) => {
    const source = program.getSourceFile(join(library, entry))
    const symbol = source && checker.getSymbolAtLocation(source)
    return (symbol === undefined ? [] : checker.getExportsOfModule(symbol)).map((one) => {
      const target = one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one
      const example = target.getJsDocTags(checker).find(({ name }) => name === 'example')
      return [entry, one.name, ts.displayPartsToString(example?.text)] as const
    })
  })
}

const code = (text: string): readonly string[] =>
  [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, body = '']) => body)
/** What an application has at hand in an example. */
const GIVEN = `declare const app: import('express').Express
declare const fastify: import('fastify').FastifyInstance
declare const hono: import('hono').Hono
declare const createServer: typeof import('node:http').createServer
declare const pool: import('pg').Pool
`
const ENTRIES: { readonly [entry: string]: string } = {
  'pdp/index.d.ts': 'portcullis',
  'pdp/shared/client/client.d.ts': 'portcullis/client',
  'pdp/engine/middleware/express.d.ts': 'portcullis/express',
  'pdp/engine/middleware/fastify.d.ts': 'portcullis/fastify',
  'pdp/engine/middleware/hono.d.ts': 'portcullis/hono',
  'pdp/engine/middleware/http.d.ts': 'portcullis/http',
}

/** A name is imported where an example uses it, and declares it not itself. */
function example(body: string, names: ReadonlyMap<string, string>): string {
  const isMissing = (name: string): boolean =>
    new RegExp(`\\b${name}\\b`).test(body) &&
    !new RegExp(`(?:const|let|type) ${name}\\b|import (?:type )?\\{[^}]*\\b${name}\\b`).test(body)
  const imports = [...names]
    .filter(([name]) => isMissing(name))
    .map(([name, from]) => `import { ${name} } from '${from}'`)
  const pdp =
    /\bpdp\b/.test(body) && !/const pdp\b/.test(body) ? "declare const pdp: import('portcullis').EmbeddedPdp\n" : ''
  const isBare = /\bstore\b/.test(body) && !/const store\b|store:/.test(body)
  const store = isBare ? "declare const store: import('portcullis').Store\n" : ''
  return `${imports.join('\n')}\n${GIVEN}${pdp}${store}${body}\nexport {}\n`
}

test('shows an example of each public name, and docs/embed.md more, all of which compile', () => {
  const names = new Map<string, string>()
  const examples: [string, string][] = []
  for (const [entry, name, text] of documented(Object.keys(ENTRIES))) {
    const from = ENTRIES[entry] ?? ''
    expect(code(text), `${from} ${name} has no example`).not.toEqual([])
    if (!names.has(name)) names.set(name, from)
    examples.push([`${from.replace('/', '-')}-${name}.mts`, code(text).join('\n')])
  }
  expect(examples.length).toBeGreaterThan(30)
  const shown = code(readFileSync('docs/embed.md', 'utf8'))
  expect(shown.length).toBeGreaterThan(5)
  for (const [i, body] of shown.entries())
    examples.push([`embed-${i}.mts`, body.replace(/^(await pdp\.can\(.*'veiwer'.*)$/m, '// @ts-expect-error\n$1')])
  const files = examples.map(([name, body]) => [name, example(body, names)] as const)
  expect(complaints({ 'model.ts': `export ${MODEL}`, ...Object.fromEntries(files) })).toEqual([])
})
