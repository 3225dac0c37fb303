/** Conditions by themselves: what is refused when a model is written, and what an expression gives for which values. */
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../../../../pdp/shared/domain/json.ts'
import { compile, evaluation, NOW_MS, told } from './told.ts'

describe('an expression', () => {
  test.each<[string, { readonly [name: string]: string }, string]>([
    ['x', { x: 'int' }, 'gives int'],
    ['x', { x: 'any' }, 'gives dyn'],
    ['y == 1', { x: 'int' }, 'names y, which is not a parameter'],
    ['x == "a"', { x: 'int' }, 'applies == to (int, string)'],
    ['x.foo()', { x: 'int' }, 'calls foo'],
    ['x && true', { x: 'int' }, 'applies && to (int, bool)'],
    ['!x', { x: 'string' }, 'applies ! to (string)'],
    ['x + 1 == "a"', { x: 'string' }, 'applies + to (string, int)'],
    ['t + t > t', { t: 'timestamp' }, 'applies + to (timestamp, timestamp)'],
    ['m[1] == 1', { m: 'map<int>' }, 'applies [] to (map<string, int>, int)'],
    ['tags.exists(t, t == 1)', { tags: 'list<string>' }, 'applies == to (string, int)'],
    ['tags.all(t, t)', { tags: 'list<string>' }, 'applies && to (bool, string)'],
    ['x.y == 1', { x: 'int' }, 'takes .y of int'],
    ['x.exists(y, true)', { x: 'int' }, 'goes through int'],
    ['Foo{a: 1} == x', { x: 'any' }, 'makes a message Foo'],
    ['x ? 1 : "a"', { x: 'bool' }, 'applies ?: to (bool, int, string)'],
    ['', {}, 'is not a CEL expression'],
    ['x ==', { x: 'int' }, 'is not a CEL expression'],
    ['x.?y == 1', { x: 'any' }, 'is not a CEL expression'],
    ['x == 1', { x: 'list' }, 'needs one type in <…>'],
    ['x == 1', { x: 'float' }, 'type float is not known'],
    ['true', { 'a b': 'int' }, 'is not a name'],
    [`${'('.repeat(60)}true${')'.repeat(60)}`, {}, 'is nested more than 50 levels'],
    [`${'!'.repeat(4_000)}true`, {}, 'is nested more than 50 levels'],
    [`x == "${'a'.repeat(4_096)}"`, { x: 'string' }, 'has more than 4096 characters'],
    ['a.exists(x, a.exists(y, a.exists(z, x + y == z)))', { a: 'list<int>' }, 'would take too long for large values'],
    [`[s]${'.map(a, a + a)'.repeat(40)}.size() > 0`, { s: 'string' }, 'would take too long for large values'],
  ])('%s is refused when the model is written', (expression, types, message) => {
    expect(() => compile(expression, types)).toThrow(message)
  })

  test.each<[string, { readonly [name: string]: string }, JsonObject, boolean]>([
    ['x < 100', { x: 'int' }, { x: 10 }, true],
    ['x < 100', { x: 'int' }, { x: '1e2' }, false],
    ['x == 9223372036854775807', { x: 'int' }, { x: '9223372036854775807' }, true],
    ['x == 18446744073709551615u', { x: 'uint' }, { x: '18446744073709551615' }, true],
    ['x == 0.5', { x: 'double' }, { x: '0.5' }, true],
    ['x == 1', { x: 'double' }, { x: 1 }, true],
    ['a || b', { a: 'bool', b: 'bool' }, { a: false, b: true }, true],
    ['d == duration("90m")', { d: 'duration' }, { d: '1.5h' }, true],
    ['d < duration("0s")', { d: 'duration' }, { d: '-2m3s' }, true],
    ['t == timestamp("2026-01-01T01:00:00+01:00")', { t: 'timestamp' }, { t: '2026-01-01T00:00:00Z' }, true],
    ['t.getHours("Europe/Berlin") == 3', { t: 'timestamp' }, { t: '2026-03-29T01:30:00Z' }, true],
    ['t.getHours("Europe/Berlin") == 1', { t: 'timestamp' }, { t: '2026-03-29T00:30:00Z' }, true],
    ['s.matches("^a+$")', { s: 'string' }, { s: 'aaa' }, true],
    ['size(s) == 1', { s: 'string' }, { s: '😀' }, true],
    ['s in tags', { s: 'string', tags: 'list<string>' }, { s: 'b', tags: ['a', 'b'] }, true],
    ['tags.map(t, size(t)).exists(n, n > 2)', { tags: 'list<string>' }, { tags: ['a', 'abc'] }, true],
    ['tags.exists_one(t, t == "a")', { tags: 'list<string>' }, { tags: ['a', 'a'] }, false],
    ['m["a"] == 1 && m.b == 2', { m: 'map<int>' }, { m: { a: 1, b: 2 } }, true],
    ['a.b[1].c == "x"', { a: 'any' }, { a: { b: [0, { c: 'x' }] } }, true],
    ['has(a.__proto__)', { a: 'any' }, { a: {} }, false],
    ['a == null', { a: 'any' }, { a: null }, true],
    ['m.a.exists(x, x == 2)', { m: 'map<list<int>>' }, { m: { a: [1, 2] } }, true],
    ['10 / x == 1 || true', { x: 'int' }, { x: 0 }, true],
  ])('%s of %j and %j is %s', (expression, types, context, holds) => {
    expect(told(compile(expression, types), context)).toBe(holds)
  })

  test.each<[string, string, JsonValue, string]>([
    ['x == true', 'bool', 'true', 'is not true or false'],
    ['x == "1"', 'string', 1, 'is not a string'],
    ['x == 1', 'int', 1.5, 'is not a whole number'],
    ['x == 1', 'int', '1.5', 'is not a whole number'],
    ['x == 1', 'int', '0x1', 'is not a whole number'],
    ['x == 1', 'int', '', 'is not a whole number'],
    ['x == 1', 'int', 2 ** 53, 'write it as a string of digits'],
    ['x == 1', 'int', '9223372036854775808', 'is not between'],
    ['x == 1', 'int', '1e999', 'is not between'],
    ['x == 1u', 'uint', -1, 'is not between'],
    ['x == 0.1', 'double', '0.1', 'is not exactly a double'],
    ['x == 0.1', 'double', '1e309', 'is not a number'],
    ['x == 0.1', 'double', Number.POSITIVE_INFINITY, 'is beyond what a double can hold'],
    ['x == duration("1s")', 'duration', '1', 'is not a duration'],
    ['x == duration("1s")', 'duration', 1, 'is not a duration'],
    ['x == duration("1s")', 'duration', '1000000000h', 'is not a duration'],
    ['x == timestamp("2026-01-01T00:00:00Z")', 'timestamp', '2026-01-01', 'is not an instant'],
    ['x == timestamp("2026-01-01T00:00:00Z")', 'timestamp', '2026-02-30T00:00:00Z', 'is not an instant'],
    ['x == timestamp("2026-01-01T00:00:00Z")', 'timestamp', '2026-01-01T24:00:00Z', 'is not an instant'],
    ['x.in_cidr("10.0.0.0/8")', 'ipaddress', '10.0.0', 'is not an IP address'],
    ['x.in_cidr("10.0.0.0/8")', 'ipaddress', '10.0.0.01', 'is not an IP address'],
    ['x.in_cidr("10.0.0.0/8")', 'ipaddress', 'fe80::1%eth0', 'is not an IP address'],
    ['x.in_cidr("10.0.0.0/8")', 'ipaddress', '1:2:3:4:5:6:7:8::', 'is not an IP address'],
    ['size(x) == 1', 'list<string>', { 0: 'a' }, 'is not a list'],
    ['size(x) == 1', 'list<string>', ['a', 1], 'is not a string'],
    ['size(x) == 1', 'map<int>', { a: 'b' }, 'is not a whole number'],
    ['size(x) == 1', 'map<int>', ['a'], 'is not an object'],
    ['size(x) == 1', 'list<int>', Array(1_001).fill(1), 'has more than 1000 elements'],
    ['x == "a"', 'string', 'a'.repeat(4_097), 'has more than 4096 characters'],
    ['x == 1', 'any', JSON.parse(`${'['.repeat(17)}${']'.repeat(17)}`), 'is nested more than 16 levels'],
  ])('%s is not evaluated for a %s that is %j', (expression, type, value, message) => {
    expect(told(compile(expression, { x: type }), { x: value })).toContain(message)
  })

  test.each<[string, JsonObject, string]>([
    ['x / 0 == 1', { x: 1 }, 'cannot be evaluated'],
    ['x + 9223372036854775807 > 0', { x: 1 }, 'cannot be evaluated'],
    ['m["b"] == 1', { m: { a: 1 } }, 'cannot be evaluated'],
    ['!(m["b"] == 1)', { m: { a: 1 } }, 'cannot be evaluated'],
  ])('%s of %j is an error, and neither true nor false', (expression, context, message) => {
    const types = {
      ...(context.x === undefined ? {} : { x: 'int' }),
      ...(context.m === undefined ? {} : { m: 'map<int>' }),
    }
    expect(told(compile(expression, types), context)).toContain(message)
  })

  test('lacks what neither the tuple nor the question has, even what it would not need', () => {
    const condition = compile('a || b || c', { a: 'bool', b: 'bool', c: 'bool' })
    expect(evaluation(condition, { a: true })).toMatchObject({ ok: false, missing: ['b', 'c'] })
    expect(evaluation(condition, {}, { a: true, c: true })).toMatchObject({ ok: false, missing: ['b'] })
    expect(told(condition, {})).toBe('condition "c" needs "a", "b", "c" in the context of the question')
  })

  test('takes what the tuple stores before what the question brings, whatever that is', () => {
    const condition = compile('x == 1 && y == 2', { x: 'int', y: 'int' })
    expect(told(condition, { x: 1, y: 2 }, { x: 3 })).toBe(false)
    expect(told(condition, { x: 'no number', y: 2 }, { x: 1 })).toBe(true)
    expect(told(condition, { x: 1, y: 2 }, { x: 'no number' })).toContain('x is not a whole number')
    expect(told(condition, { x: 1, y: 2, z: 'ignored', __proto__: null }, {})).toBe(true)
  })

  test('is not evaluated where it would take long for the values that there are', () => {
    const condition = compile('a.exists(x, b.exists(y, x == y))', { a: 'list<int>', b: 'list<int>' })
    const numbers = (count: number, from: number) => Array.from({ length: count }, (_, i) => from + i)
    expect(told(condition, { a: numbers(20, 0), b: numbers(20, 19) })).toBe(true)
    expect(told(condition, { a: numbers(1_000, 0), b: numbers(1_000, 5_000) })).toContain('takes too long')
    const pattern = compile('s.matches(p)', { s: 'string', p: 'string' })
    expect(told(pattern, { s: 'a'.repeat(4_000), p: '(a*)*'.repeat(800) })).toContain('takes too long')
  })

  test('is not evaluated once a question has evaluated too much', () => {
    const condition = compile('x == 1', { x: 'int' })
    const asked = condition.argumentsOf({ x: 1 })
    const spent = condition.evaluate(condition.argumentsOf({}), asked, { nowMs: () => 0, spend: () => false })
    expect(spent).toMatchObject({ ok: false, missing: [] })
  })
})

describe('an address', () => {
  const within = compile('ip.in_cidr(network)', { ip: 'ipaddress', network: 'string' })
  test.each<[string, string, boolean | string]>([
    ['192.168.1.9', '192.168.0.0/16', true],
    ['192.169.1.9', '192.168.0.0/16', false],
    ['192.168.1.9', '0.0.0.0/0', true],
    ['192.168.1.9', '192.168.1.9/32', true],
    ['192.168.1.8', '192.168.1.9/31', true],
    ['::ffff:192.168.1.9', '192.168.0.0/16', true],
    ['::ffff:c0a8:0109', '192.168.0.0/16', true],
    ['192.168.1.9', '::ffff:192.168.0.0/112', true],
    ['192.168.1.9', '::/0', false],
    ['192.168.1.9', '::ffff:192.168.0.0/95', false],
    ['::192.168.1.9', '192.168.0.0/16', false],
    ['192.168.1.9', '::192.168.0.0/112', false],
    ['::fffe:0:1', '::ffff:0.0.0.0/95', true],
    ['192.168.1.9', '0xc0.168.0.0/16', 'cannot be evaluated'],
    ['192.168.1.9', '192.168/16', 'cannot be evaluated'],
    ['fe80::1', 'fe80::%eth0/64', 'cannot be evaluated'],
    ['2001:db8::1', '2001:db8::/32', true],
    ['2001:db9::1', '2001:db8::/32', false],
    ['2001:db8::1', '192.168.0.0/16', false],
    ['::1', '::/127', true],
    ['192.168.1.9', '192.168.0.0', 'cannot be evaluated'],
    ['192.168.1.9', '192.168.0.0/33', 'cannot be evaluated'],
    ['192.168.1.9', '192.168.0.0/08', 'cannot be evaluated'],
    ['192.168.1.9', 'nonsense/8', 'cannot be evaluated'],
  ])('%s in %s: %s', (ip, network, expected) => {
    const found = told(within, { ip, network })
    if (typeof expected === 'boolean') expect(found).toBe(expected)
    else expect(found).toContain(expected)
  })

  test('equals itself in another spelling, and is made from a text', () => {
    const same = compile('a == b || a == ipaddress("10.0.0.1")', { a: 'ipaddress', b: 'ipaddress' })
    expect(told(same, { a: '::1', b: '0:0:0:0:0:0:0:1' })).toBe(true)
    expect(told(same, { a: '::ffff:10.0.0.1', b: '::1' })).toBe(true)
    expect(told(same, { a: '::2', b: '::1' })).toBe(false)
  })
})

describe('the clock', () => {
  const at = (ms: number): string => new Date(ms).toISOString()
  const until = (expression: string, context: JsonObject, types: { readonly [name: string]: string } = {}) => {
    const result = evaluation(compile(expression, { now: 'timestamp', ...types }), context)
    return result.ok ? [result.holds, result.untilMs] : result.message
  }

  test.each<[string, JsonObject, boolean, number | null]>([
    ['now < t', { t: at(NOW_MS + 5_000) }, true, NOW_MS + 5_000],
    ['now <= t', { t: at(NOW_MS + 5_000) }, true, NOW_MS + 5_000],
    ['now >= t', { t: at(NOW_MS + 5_000) }, false, NOW_MS + 5_000],
    ['t <= now', { t: at(NOW_MS) }, true, NOW_MS + 1],
    ['now < t', { t: at(NOW_MS - 5_000) }, false, null],
    ['now < t + duration("1h")', { t: at(NOW_MS) }, true, NOW_MS + 3_600_000],
    ['now > t && now < t + duration("1h")', { t: at(NOW_MS + 1_000) }, false, NOW_MS + 1_000],
    ['now - t < duration("1h")', { t: at(NOW_MS) }, true, NOW_MS + 1_000],
    ['now.getHours() == 0 && t == t', { t: at(NOW_MS) }, true, NOW_MS + 1_000],
    ['[t].exists(x, now < x)', { t: at(NOW_MS + 9_000) }, true, NOW_MS + 1_000],
  ])('read by %s of %j gives %s, known until %d', (expression, context, holds, untilMs) => {
    expect(until(expression, context, { t: 'timestamp' })).toEqual([holds, untilMs])
  })

  test('is what the question says, and then known for ever', () => {
    const context = { now: at(NOW_MS + 9_000), t: at(NOW_MS + 5_000) }
    expect(until('now < t', context, { t: 'timestamp' })).toEqual([false, null])
  })

  test('is a parameter like any other where it is not a timestamp', () => {
    expect(evaluation(compile('now == "x"', { now: 'string' }), {})).toMatchObject({ ok: false, missing: ['now'] })
  })
})
