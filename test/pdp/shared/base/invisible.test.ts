/** What nobody could see is written out, and what makes an emoji is left alone. */
import { expect, test } from 'vitest'
import { visible } from '../../../../pdp/shared/base/invisible.ts'

test.each(['👩‍💻', '🏳️‍🌈', '❤️', '👨‍👩‍👧', '👍🏽', '👩🏽‍💻'])('%s is one emoji', (emoji) => {
  expect(visible(`team ${emoji} a`)).toBe(`team ${emoji} a`)
})

test.each([
  ['a\u200Db', 'aU+200Db'],
  ['👩\u200D', '👩U+200D'],
  ['\u200D👩', 'U+200D👩'],
  ['👩\u200Da', '👩U+200Da'],
  ['👩\u200D\u200D👩', '👩U+200DU+200D👩'],
  ['a\uFE0F', 'aU+FE0F'],
  ['👩\uFE0F\uFE0F', '👩\uFE0FU+FE0F'],
  ['a\u202Eb', 'aU+202Eb'],
  ['a\u00A0b', 'aU+00A0b'],
])('%j shows what nobody could see', (text, shown) => {
  expect(visible(text)).toBe(shown)
})
