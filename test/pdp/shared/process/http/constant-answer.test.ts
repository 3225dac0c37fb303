import { expect, test } from 'vitest'
import { constantAnswer, isKnown } from '../../../../../pdp/shared/process/http/constant-answer.ts'

const answer = constantAnswer({ a: 1 })
const { tag } = answer

test('the bytes are the document, and another document has another tag', () => {
  expect(JSON.parse(answer.bytes.toString())).toEqual({ a: 1 })
  expect(constantAnswer({ a: 2 }).tag).not.toBe(tag)
  expect(constantAnswer({ a: 1 }).tag).toBe(tag)
})

test.each([[tag], [`W/${tag}`], ['*'], [`"other", ${tag}`], [`"other",\t W/${tag} `]])('%s names it', (field) => {
  expect(isKnown(answer, field)).toBe(true)
})

test.each([undefined, '', ',', '"other"', tag.slice(1, -1), `w/${tag}`, `W/ ${tag}`, `\u00a0${tag}`, `${tag}x`, '**'])(
  '%j does not name it',
  (field) => {
    expect(isKnown(answer, field)).toBe(false)
  },
)
