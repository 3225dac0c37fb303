/** What docs/routes.md shows is so, docs/routes-reference.yaml is the table that route files are read by, and docs/service.md names the fields that are set. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { runRouteTests } from '../../sidecar/commands/route-report.ts'
import { OWN_FIELDS } from '../../sidecar/http/stripped-fields.ts'
import { ROUTE, ROUTE_FILE } from '../../sidecar/route-file/format.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { routeFileReference } from './route-file-reference.ts'

const fileOf = (name: string): string => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url))
const read = (name: string): string => readFileSync(fileOf(name), 'utf8')
const PAGE = read('routes.md')

// After a change to the table: `npm test -- test/docs/routes.test.ts -u` writes the reference again.
test('the reference is made from the table, and is YAML with each key where it stands', async () => {
  const text = routeFileReference()
  await expect(text).toMatchFileSnapshot(fileOf('routes-reference.yaml'))
  expect(Object.keys(parse(text))).toEqual(Object.keys(ROUTE_FILE))
  expect(parse(text).issuers[0].external.claims).toHaveProperty('groups')
  expect(Object.keys(Object.values(parse(text).routes)[0] ?? {})).toEqual(Object.keys(ROUTE))
})

test('the example is valid, and passes its tests', async () => {
  const [, source = ''] = /```yaml\n(# routes\.md\n[\s\S]*?)```/.exec(PAGE) ?? []
  const { file, issues } = parseRouteFile(source)
  expect(issues).toEqual([])
  if (file === null) return
  expect(file.routes).toHaveLength(7)
  expect((await runRouteTests(file, 'routes.md')).failed).toBe(0)
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

test('the page of the service names each identity field in its table, and no other', () => {
  const named = [...read('service.md').matchAll(/^\| `(X-Auth-[\w-]+)` \|/gm)].map(([, name = '']) =>
    name.toLowerCase(),
  )
  expect(named.toSorted()).toEqual(OWN_FIELDS.filter((name) => name.startsWith('x-auth-')).toSorted())
})
