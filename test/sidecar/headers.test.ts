import { beforeAll, describe, expect, test } from 'vitest'
import { createHeaderRules, downstreamFields, firstValue, foldName } from '../../sidecar/headers.ts'

/** More than are remembered, of the kind that an attacker would send first. */
function fillMemory(strips: (folded: string) => boolean): void {
  for (let at = 0; at < 3_000; at += 1) strips(foldName(`X-Filler-${at}`))
}

describe.each(['before', 'after'])('names, %s as many were seen as are remembered', (when) => {
  const { strips } = createHeaderRules(['X_Own'])
  beforeAll(() => {
    if (when === 'after') fillMemory(strips)
  })
  const long = 'a'.repeat(100)

  test.each([
    ['X-Auth-Subject', 'x-auth-subject'],
    ['x_auth_subject', 'x-auth-subject'],
    ['X.AUTH!SUBJECT', 'x-auth-subject'],
    [`X_Auth_${long}`, `x-auth-${long}`],
    ['Content_Length', 'content-length'],
    ['x-\xe9', 'x--'],
    ['__proto__', '--proto--'],
    ['constructor', 'constructor'],
    ['', ''],
  ])('%s folds to the same twice', (name, folded) => {
    expect([foldName(name), foldName(name)]).toEqual([folded, folded])
  })

  test.each([
    'authorization',
    'x-forwarded-for',
    'x-auth-subject',
    `x-auth-${long}`,
    'host',
    'transfer-encoding',
    'x-own',
  ])('%s is stripped, asked once or twice', (folded) => {
    expect([strips(folded), strips(folded)]).toEqual([true, true])
  })

  test.each(['accept', 'x-own-2', `x-${long}`, 'constructor', '--proto--', ''])(
    '%s passes, asked once or twice',
    (folded) => {
      expect([strips(folded), strips(folded)]).toEqual([false, false])
    },
  )

  test('what one configuration strips is not what another does', () => {
    expect(createHeaderRules([]).strips('x-own')).toBe(false)
  })
})

describe('fields of an answer', () => {
  test('pass without those of the connection, and those that it lists', () => {
    const raw = ['Connection', 'X-Hop, close', 'X-Hop', '1', 'CONNECTION', 'x-other', 'X-Other', '2', 'X-Kept', '3']
    expect(downstreamFields([...raw, 'Keep-Alive', 'timeout=5', 'Upgrade', 'h2c'])).toEqual(['X-Kept', '3'])
  })

  test('are found by name in any case, the first of them, and not by a part or a value', () => {
    const raw = ['X-A', 'content-length', 'Content-Length', '5', 'content-length', '6', 'odd']
    expect([firstValue(raw, 'content-length'), firstValue(raw, 'x-a')]).toEqual(['5', 'content-length'])
    for (const name of ['content', 'content-length-', 'odd', '']) expect(firstValue(raw, name)).toBeNull()
  })
})
