import { describe, expect, test } from 'vitest'
import { satisfies, signInOf } from '../../../sidecar/routes/step-up.ts'

const NOW_MS = 1_800_000_000_000
const NOW = NOW_MS / 1_000
const isEnough = (acr: string | null, authTime: unknown, rule: Partial<Parameters<typeof satisfies>[1]>): boolean =>
  satisfies(signInOf({ acr, auth_time: authTime }), { acrValues: [], maxAgeSeconds: null, ...rule }, NOW_MS)

describe('a sign-in of at most ten minutes', () => {
  test.each([
    ['now', NOW],
    ['ten minutes ago', NOW - 600],
    ['by a clock that is a minute ahead', NOW + 60],
  ])('is one of %s', (_when, authTime) => {
    expect(isEnough(null, authTime, { maxAgeSeconds: 600 })).toBe(true)
  })

  test.each([
    ['a second earlier', NOW - 601],
    ['unknown times', undefined],
    ['no number', String(NOW)],
    ['no finite time', Number.POSITIVE_INFINITY],
    ['a time that has not come yet', NOW + 61],
    ['milliseconds', NOW_MS],
    ['milliseconds of long ago', NOW_MS - 86_400_000],
    ['the end of time', 1e300],
  ])('is none of %s', (_when, authTime) => {
    expect(isEnough(null, authTime, { maxAgeSeconds: 600 })).toBe(false)
  })
})

describe('a strong sign-in', () => {
  const acrValues = ['strong', 'stronger']
  test.each(['strong', 'stronger'])('is %s', (acr) => void expect(isEnough(acr, undefined, { acrValues })).toBe(true))
  test.each(['weak', 'Strong', '', null])('is not %s', (acr) => {
    expect(isEnough(acr, NOW, { acrValues })).toBe(false)
  })
  test('is not enough when it is old', () => {
    expect(isEnough('strong', NOW - 601, { acrValues, maxAgeSeconds: 600 })).toBe(false)
  })
})
