/** The values of a check as a table, without a socket: templates, and claims of each type. */
import { describe, expect, test } from 'vitest'
import type { InboundRequest } from '../../../sidecar/request/inbound.ts'
import type { Source, Template } from '../../../sidecar/routes/template.ts'
import { requestValues } from '../../../sidecar/routes/values.ts'

const parameter = (index: number, name: string): Source => ({ from: 'path', name, index, parts: [name] })
const claim: Source = { from: 'claims', name: 'tenant' }

function valuesOf(parameters: readonly string[], tenant?: unknown) {
  const all = Object.assign(Object.create(null), tenant === undefined ? {} : { tenant })
  const claims = { all, scopes: new Set<string>(), organization: null }
  const request = { target: { query: null } }
  return requestValues({ request: request as InboundRequest, parameters, keepQuery: false, claims, body: null })
}
const [A, B] = [parameter(0, 'a'), parameter(1, 'b')]
const PAIR: Template = [A, '/', B]
const fill = (template: Template, parameters: readonly string[]): string | null => valuesOf(parameters).fill(template)

describe('a template', () => {
  test.each<[string, Template, readonly string[], string]>([
    ['one value', [A], ['1'], '1'],
    ['a literal', ['fixed'], [], 'fixed'],
    ['two values', PAIR, ['a', 'b'], 'a/b'],
    ['the mark in the last value', PAIR, ['a', 'b/c'], 'a/b/c'],
    ['a value in another script', [A], ['\u7d44'], '\u7d44'],
    ['a value of 512 bytes', [A], ['\u00e9'.repeat(256)], '\u00e9'.repeat(256)],
    ['a single value before a literal', [A, '/x'], ['a/b'], 'a/b/x'],
  ])('of %s', (_name, template, parameters, id) => {
    expect(fill(template, parameters)).toBe(id)
  })

  test.each<[string, Template, readonly string[]]>([
    ['two pairs of values with one id', PAIR, ['a/b', 'c']],
    ['an empty value', PAIR, ['', 'b']],
    ['a value with #', [A], ['a#b']],
    ['a value with a space', [A], ['a b']],
    ['an accent that stands by itself', [A], ['e\u0301']],
    ['a full-width digit', [A], ['\uff14']],
    ['half of a surrogate pair', [A], ['\ud800']],
    ['a value that is * alone', [A], ['*']],
    ['a value of 513 bytes', [A], [`${'\u00e9'.repeat(256)}x`]],
    ['values that are too long together', PAIR, ['x'.repeat(400), 'y'.repeat(200)]],
    ['no value at all', [], []],
  ])('refuses %s', (_name, template, parameters) => {
    expect(() => fill(template, parameters)).toThrow()
  })

  test('is missing with a missing claim, which denies', () => {
    expect(valuesOf([]).fill(['x', claim])).toBeNull()
  })
})

describe('a claim', () => {
  test.each<[unknown, string | null]>([
    ['acme', 'acme'],
    [7, '7'],
    [-7, '-7'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [2 ** 53, null],
    [1e21, null],
    [1.5, null],
    [Number.NaN, null],
    [true, null],
    [null, null],
    [undefined, null],
    [['acme'], null],
    [{ id: 'acme' }, null],
    ['', null],
    ['*', null],
    ['a#b', null],
    ['a b', null],
  ])('of %j reads as %j', (tenant, expected) => {
    expect(valuesOf([], tenant).read(claim)).toBe(expected)
  })
})
