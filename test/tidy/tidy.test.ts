/** The tidy check finds what it is for, and nothing else. */
import { describe, expect, test } from 'vitest'
import { excess, findings } from './tidy.ts'

const ARCHITECTURE = '# A\n\n## 1. Scope\n\n## 2. Rooms\n'
const GONE = 'store/gone.ts'
const NOTHING = findings(new Map())
const lines = (count: number): string => ' x()\n'.repeat(count)
const problems = (files: { readonly [path: string]: string }): readonly string[] =>
  excess(findings(new Map(Object.entries({ 'ARCHITECTURE.md': ARCHITECTURE, 'pdp/a.ts': '', ...files }))), NOTHING)

describe('the tidy check refuses', () => {
  test.each<[string, { readonly [path: string]: string }]>([
    ['a file of more than 400 lines', { 'pdp/b.ts': 'x\n'.repeat(401) }],
    ['a function of more than 70 lines', { 'pdp/b.ts': `function f() {\n${lines(69)}}\n` }],
    ['a function of more than 70 lines in a class', { 'pdp/b.ts': `class A {\n  f() {\n${lines(69)}}\n}\n` }],
    ['a value that is a function of more than 70 lines', { 'pdp/b.ts': `const f = () => {\n${lines(69)}}\n` }],
    [
      'a composition root of more than 100 lines',
      { 'pdp/server/runtime/start.ts': `function compose() {\n${lines(99)}}\n` },
    ],
    [
      'a folder of more than 20 files',
      Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`sidecar/f${n}.ts`, ''])),
    ],
    ['a variable of a module', { 'pdp/b.ts': 'let count = 0\n' }],
    ['a map of a module that is written', { 'pdp/b.ts': 'const seen = new Map()\nconst f = () => seen.set(1, 2)\n' }],
    ['an array of a module that is written', { 'sidecar/b.ts': 'const all: string[] = []\nall.push(1)\n' }],
    ['a link to a file that does not exist', { 'README.md': '[a](pdp/gone.ts)' }],
    ['a path of a file that does not exist, in a document', { 'README.md': 'see `pdp/gone.ts`' }],
    ['a path of a folder that does not exist, in a document', { 'README.md': 'see `pdp/gone/`' }],
    ['the name of a folder that does not exist, in a document', { 'README.md': 'see `gone/`' }],
    ['the name of a file that does not exist, in a comment', { 'pdp/b.ts': '// As in gone.ts.\n' }],
    ['a path within a room that does not exist, in a comment', { 'test/b.test.ts': `/** As ${GONE} does. */\n` }],
    ['a section that does not exist, in a comment', { 'pdp/b.ts': '/** ARCHITECTURE.md section 3. */\n' }],
    ['a section that does not exist, in ARCHITECTURE itself', { 'ARCHITECTURE.md': '## 1. A\n(section 2)' }],
    ['a document that the reader does not have', { 'pdp/b.ts': '// DESIGN section 2\n' }],
    ['the number of an issue', { 'pdp/b.ts': '// See issue 12.\n' }],
    ['an old name in code', { 'pdp/b.ts': 'const lineage = 1\n' }],
    ['a caught error that is not named err', { 'pdp/b.ts': 'try {} catch (error) {}\n' }],
    ['a comment that begins without a subject', { 'sidecar/b.ts': '/** Of the route. */\nconst a = 1\n' }],
    ['a longer one', { 'pdp/b.ts': '/**\n * What it says.\n */\nconst a = 1\n' }],
    ['one of a line', { 'pdp/b.ts': '// Who asks.\nconst a = 1\n' }],
    ['a function that reads requests and has no row', { 'sidecar/request/b.ts': 'export function readB() {}\n' }],
    ['a row for a function that is gone', { 'test/sidecar/growth/rows.ts': "runs: ['sidecar/request/b.ts:gone']\n" }],
    ['blanks of JavaScript in a reader of a protocol', { 'sidecar/http/b.ts': 'const f = (a) => a.trim()\n' }],
  ])('%s', (_, files) => {
    expect(problems(files)).toHaveLength(1)
  })
})

describe('the tidy check accepts', () => {
  test.each<[string, { readonly [path: string]: string }]>([
    ['a file of 400 lines', { 'pdp/b.ts': 'x\n'.repeat(400) }],
    ['a function of 70 lines', { 'pdp/b.ts': `function f() {\n${lines(68)}}\n` }],
    ['a class that is longer', { 'pdp/b.ts': `class A {\n  f() {\n${lines(60)}}\n  g() {\n${lines(60)}}\n}\n` }],
    ['a composition root of 100 lines', { 'pdp/server/runtime/start.ts': `function compose() {\n${lines(98)}}\n` }],
    ['a long function of a test', { 'test/b.test.ts': `function f() {\n${lines(99)}}\n` }],
    ['a folder of 20 files', Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`sidecar/f${n}.ts`, '']))],
    [
      'more migrations than that',
      Object.fromEntries(
        Array.from({ length: 21 }, (_, n) => [`pdp/engine/store/postgres/migrations/${1000 + n}-x.sql`, '']),
      ),
    ],
    ['a set that is only read', { 'pdp/b.ts': "const NAMES = new Set(['a'])\nconst f = () => NAMES.has('a')\n" }],
    [
      'the memory of a pure function that is listed with its reason',
      { 'sidecar/http/folding.ts': 'const foldedNames = new Map()\nconst f = () => foldedNames.set(1, 2)\n' },
    ],
    ['them elsewhere', { 'pdp/engine/b.ts': 'const f = (a) => a.trim()\n' }],
    ['a variable of a function', { 'pdp/b.ts': 'function f() {\n  let n = 0\n}\n' }],
    ['module state of a test', { 'test/b.test.ts': 'let n = 0\n' }],
    ['links and paths that exist', { 'README.md': '[a](pdp/a.ts) `pdp/` [b](https://example.com/x) [c](#here) a.ts' }],
    [
      'a section that exists, and sections of an RFC',
      { 'pdp/b.ts': '// ARCHITECTURE.md section 2, RFC 9068 section 4\n' },
    ],
    ['a path in a string of code', { 'test/b.ts': "const path = 'store/gone.ts'\n" }],
    ['a caught error that is named err', { 'pdp/b.ts': 'try {} catch (err) {}\n' }],
    ['an old name in a comment or string', { 'pdp/b.ts': "// lineage\nconst text = 'lineage'\n" }],
  ])('%s', (_, files) => {
    expect(problems(files)).toEqual([])
  })
})

test('accepts what the ratchet allows, and not one more', () => {
  const found = findings(new Map([['pdp/b.ts', 'const lineage = 1\n']]))
  expect(excess(found, found)).toEqual([])
  const more = findings(new Map([['pdp/b.ts', 'const lineage = lineage\n']]))
  expect(excess(more, found)).toEqual(['old names: lineage (2, allowed 1)'])
})
