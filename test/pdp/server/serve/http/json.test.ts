import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson, parseUtf8 } from '../../../../../pdp/server/serve/http/json.ts'
import { RequestProblem } from '../../../../../pdp/server/serve/http/status.ts'

const issues = (text: string): readonly string[] => {
  try {
    parseJson(text)
    return []
  } catch (err) {
    if (!(err instanceof RequestProblem) || err.code !== 'request_invalid') throw err
    return err.issues.length === 0 ? [err.message] : err.issues.map(({ place, message }) => `${place} ${message}`)
  }
}

describe('parseJson', () => {
  test.each([
    ['at the top', '{"a":1,"a":1}', ['/a occurs more than once']],
    ['spelled in two ways', '{"a":1,"\\u0061":2}', ['/a occurs more than once']],
    ['inside a list', '{"x":[{"a":1},{"b":[],"a":"{","b":0}]}', ['/x/1/b occurs more than once']],
    ['under a name with a slash', '{"a/b":{"~":1,"~":2}}', ['/a~1b/~0 occurs more than once']],
    ['three times', '{"a":1,"a":2,"a":3}', ['/a occurs more than once', '/a occurs more than once']],
    ['with white space between', '{ "a" : 1 ,\n\t"a" :\r 2 }', ['/a occurs more than once']],
    ['that is empty', '{"":1,"":2}', ['/ occurs more than once']],
    ['after an escaped quote', '{"a\\"":1,"b":"\\\\","a\\"":2}', ['/a" occurs more than once']],
  ])('refuses a name %s', (_, text, expected) => {
    expect(issues(text)).toEqual(expected)
  })

  test.each(['{"__proto__":{}}', '{"a":{"\\u005f_proto__":1}}'])('refuses the name that inherits: %s', (text) => {
    expect(issues(text)).toEqual([expect.stringMatching(/^(\/a)?\/__proto__ is not an allowed member name$/)])
  })

  test.each(['', '{', '{"a":}', "{'a':1}", '{"a":1,}', '1 2', 'NaN', '{"a":1}//'])(
    'refuses %j, which is not JSON',
    (text) => {
      expect(issues(text)).toEqual(['the body is not JSON'])
    },
  )

  test.each([
    '{"a":"a","b":["a","a",{"a":"b"}]}',
    '[["a"],"a",{"a":{"a":{"a":1}}}]',
    '"a"',
    '{"a":"\\"a\\":1,"}',
    '{}',
    ' 1 ',
  ])('takes %s as it is', (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  test('takes whatever JSON.stringify writes, and refuses it with one member again', () => {
    const named = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'))
    fc.assert(
      fc.property(named, fc.string(), (value, name) => {
        const text = JSON.stringify({ [name === '__proto__' ? 'a' : name]: value })
        expect(parseJson(text)).toEqual(JSON.parse(text))
        expect(issues(`${text.slice(0, -1)},${text.slice(1)}`)).toHaveLength(1)
      }),
    )
  })

  test('says at most a hundred mistakes', () => {
    expect(issues(`{${Array.from({ length: 500 }, () => '"a":1').join(',')}}`)).toHaveLength(100)
  })

  test.each([
    ['deep', '['.repeat(50_000), ']'.repeat(50_000)],
    ['under a long name', `{"${'x'.repeat(50_000)}":`, '}'],
  ])('says no more about what is %s than about two such places', (_, before, after) => {
    const text = `${before}{${Array.from({ length: 500 }, () => '"a":1').join(',')}}${after}`
    const said = issues(text)
    expect(said[0]).toMatch(/\/a occurs more than once$/)
    expect(said.join().length).toBeLessThan(2 * text.length)
  })
})

test('refuses bytes that are not UTF-8', () => {
  expect(() => parseUtf8(Buffer.from([0x22, 0xff, 0x22]))).toThrow('the body is not UTF-8')
  expect(parseUtf8(Buffer.from('"é"'))).toBe('"é"')
})
