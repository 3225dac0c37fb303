/** What the README shows works as it stands. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

it("finds no mistake in the README's route file, which serves localhost", () => {
  const [, source = ''] = /```yaml\n(# routes\.yaml\n[\s\S]*?)```/.exec(README) ?? []
  const { file, issues } = parseRouteFile(source)
  expect(issues).toEqual([])
  expect(file?.hosts).toEqual(['app.example.com', 'localhost'])
  expect(file?.routes).toHaveLength(5)
})
