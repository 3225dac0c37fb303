/** What README, CONTRIBUTING and ARCHITECTURE show is so. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const README = read('README.md')

test("finds no mistake in the README's route file, which serves localhost", () => {
  const [, source = ''] = /```yaml\n(# routes\.yaml\n[\s\S]*?)```/.exec(README) ?? []
  const { file, issues } = parseRouteFile(source)
  expect(issues).toEqual([])
  expect(file?.hosts).toEqual(['app.example.com', 'localhost'])
  expect(file?.routes).toHaveLength(5)
})

test('explains each npm command in CONTRIBUTING, and no other', () => {
  const { scripts } = JSON.parse(read('package.json'))
  const explained = [...read('CONTRIBUTING.md').matchAll(/^\| `npm (?:run )?([\w:]+)`/gm)].map(([, name]) => name)
  expect(explained.sort()).toEqual(Object.keys(scripts).sort())
})

test('gives a reason for each dependency in ARCHITECTURE, and names no other', () => {
  const { dependencies } = JSON.parse(read('package.json'))
  const [, table = ''] = /^## 9\.([\s\S]*?)^## 10\./m.exec(read('ARCHITECTURE.md')) ?? []
  const rows = [...table.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, names = '']) => names.match(/[^`, ]+/g) ?? [])
  expect(rows.sort()).toEqual(Object.keys(dependencies).sort())
})
