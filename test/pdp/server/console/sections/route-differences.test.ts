/** Sidecars that enforce different route files show where they differ, and which file is newer. */
import { expect, test } from 'vitest'
import { routeDifferences } from '../../../../../pdp/server/console/sections/route-differences.ts'
import type { ReportedSidecar } from '../../../../../pdp/server/serve/grpc/route-reports.ts'

const sidecar = (
  name: string,
  fileHash: string,
  loadedMs: number,
  routes: { readonly [id: string]: string },
): ReportedSidecar => ({
  name,
  fileHash,
  loadedMs,
  resource: 'https://api.example',
  caller: 'service account shop/api',
  connectedMs: 0,
  routes: Object.entries(routes).map(([id, check]) => ({
    id,
    check,
    shadow: false,
    tests: 0,
    requests: 0,
    denied: 0,
    shadowed: 0,
  })),
  leftOut: 0,
  tests: 0,
  warnings: [],
  try: async () => null,
})
const shown = (...all: readonly ReportedSidecar[]): string =>
  routeDifferences({ url: null, query: () => '', tables: new Map() }, all)
    .toString()
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')

const OLD = { 'GET /a': 'viewer a:1', 'GET /b': 'viewer b:1' }
const NEW = { 'GET /a': 'editor a:1', 'GET /b': 'viewer b:1', 'GET /c': 'public' }

test('the file that was heard of last is the newer one, whoever connected first', () => {
  const page = shown(sidecar('shop/pod-1/1', 'hash-old', 10, OLD), sidecar('shop/pod-2/1', 'hash-new', 20, NEW))
  expect(page).toMatch(/Newer hash-new .*shop\/pod-2\/1.* Older hash-old .*shop\/pod-1\/1/)
  expect(page).toMatch(/GET \/a editor a:1 viewer a:1 GET \/c public no such route/)
  expect(page).not.toContain('GET /b')
})

test('an old file stays old when one of its sidecars starts again', () => {
  const old = [sidecar('a', 'hash-old', 10, OLD), sidecar('b', 'hash-old', 30, OLD)]
  expect(shown(...old, sidecar('c', 'hash-new', 20, NEW))).toMatch(/Newer hash-new .* Older hash-old/)
})

test('files with the same routes differ in something else', () => {
  expect(shown(sidecar('a', 'one', 1, OLD), sidecar('b', 'two', 2, OLD))).toContain('differ in something else')
})

test('nothing is said where all agree, or where resources differ', () => {
  expect(shown(sidecar('a', 'one', 1, OLD), sidecar('b', 'one', 2, OLD))).toBe('')
  expect(
    shown(sidecar('a', 'one', 1, OLD), { ...sidecar('b', 'two', 2, NEW), resource: 'https://other.example' }),
  ).toBe('')
  expect(shown()).toBe('')
})
