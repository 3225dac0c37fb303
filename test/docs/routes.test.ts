/** What docs/routes.md shows is so, and its reference is the table that route files are read by. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runRouteTests } from '../../sidecar/commands/route-report.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { routeFileReference } from './route-file-reference.ts'

const FILE = fileURLToPath(new URL('../../docs/routes.md', import.meta.url))
const PAGE = readFileSync(FILE, 'utf8')
const MARK = '<!-- reference -->\n'

// After a change to the table: `npm test -- test/docs/routes.test.ts -u` writes the reference again.
test('the reference is made from the table', async () => {
  const text = PAGE.slice(0, PAGE.indexOf(MARK) + MARK.length)
  await expect(`${text}\n${routeFileReference()}`).toMatchFileSnapshot(FILE)
})

test('the example is valid, and passes its tests', () => {
  const [, source = ''] = /```yaml\n(# routes\.md\n[\s\S]*?)```/.exec(PAGE) ?? []
  const { file, issues } = parseRouteFile(source)
  expect(issues).toEqual([])
  if (file === null) return
  expect(file.routes).toHaveLength(7)
  expect(runRouteTests(file, 'routes.md').failed).toBe(0)
})

test('the entry for catalogues has the form of SchemaStore', () => {
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(PAGE) ?? []
  expect(JSON.parse(json)).toEqual({
    name: expect.any(String),
    description: expect.any(String),
    fileMatch: expect.arrayContaining(['portcullis.yaml']),
    url: expect.stringMatching(/^https:\/\//),
  })
})
