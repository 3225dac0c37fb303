/** The difference of two texts leads from the one to the other. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedTypes, diffOf, shownDiff } from '../../../../pdp/server/console/line-diff.ts'

const textOf = (lines: readonly { readonly text: string }[]): string => lines.map(({ text }) => text).join('\n')
const lines = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 12 })
  .map((all) => all.join('\n'))

test('what is kept and removed is the one text, and what is kept and added the other', () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const found = diffOf(before, after)
      expect(textOf(found.filter(({ sign }) => sign !== '+'))).toBe(before)
      expect(textOf(found.filter(({ sign }) => sign !== '−'))).toBe(after)
    }),
  )
})

test.each([
  ['type a\ntype b\ntype c', 'type a\ntype c', ['−type b']],
  ['type a\ntype c', 'type a\ntype b\ntype c', ['+type b']],
  ['a\nb', 'a\r\nb\r\n', []],
  ['', 'a', ['+a']],
  ['a', '', ['−a']],
  ['', '', []],
])('of %j and %j is no more than it must be', (before, after, expected) => {
  const found = diffOf(before, after).filter(({ sign }) => sign !== ' ')
  expect(found.map(({ sign, text }) => sign + text)).toEqual(expected)
})

test('texts of thousands of lines without anything in common are compared within bounds', () => {
  const many = (name: string): string => Array.from({ length: 5_000 }, (_, i) => `${name} ${i}`).join('\n')
  expect(diffOf(many('a'), many('b'))).toHaveLength(10_000)
  expect(shownDiff(diffOf(many('a'), many('b')), 'title').toString()).toContain('The first 400 lines are shown')
})

const MODEL =
  'model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\ntype doc\n  relations\n    define viewer: [user]\n'
test.each([
  [MODEL.replace('viewer: [user]', 'viewer: [group#member]'), ['doc']],
  [MODEL.replaceAll('[user]', '[user, user:*]'), ['group', 'doc']],
  [`${MODEL}type folder\n`, ['folder']],
  [MODEL.replace('schema 1.1', 'schema 1.2'), []],
  [MODEL, []],
])('of two models names the types that changed', (after, expected) => {
  expect(changedTypes(MODEL, after)).toEqual(expected)
})

test('markup in a text stands as text', () => {
  expect(shownDiff(diffOf('', '<script>alert(1)</script>'), 'title').toString()).not.toContain('<script>')
})

test('of two models in JSON the types that changed are named', () => {
  const model = (viewer: string) => ({
    type_definitions: [
      { type: 'user', relations: {} },
      { type: 'doc', relations: { [viewer]: { this: {} } }, metadata: { relations: [{ type: 'user' }] } },
    ],
  })
  const [before, after] = ['viewer', 'reader'].map((relation) => JSON.stringify(model(relation), null, 2))
  expect(changedTypes(before ?? '', after ?? '')).toEqual(['doc'])
})
