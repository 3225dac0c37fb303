/** Routes that take only some of the tokens that their file takes. */
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { openedRoutes } from '../../../sidecar/runtime/opened-routes.ts'
import { run } from '../support/enforcing.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const NARROW = 'GET /x: {check: signed_in, issuers: https://as.test, audience: [https://app.test]}'
const codeOf = async (claims: object, shadow = false): Promise<string> => {
  const routes = shadow ? NARROW.replace('{', '{mode: shadow, ') : NARROW
  const { outcome, asked } = await run({ line: 'GET /x', routes, claims: { ...claims } })
  expect(asked.length).toBe(outcome.kind === 'permit' && outcome.shadowed === null ? 1 : 0)
  return outcome.kind === 'denial' ? `${outcome.code}: ${outcome.reason}` : outcome.kind
}

describe('a route with issuers and audience', () => {
  test('takes a token of both', async () => {
    expect(await codeOf({})).toBe('permit')
    expect(await codeOf({ aud: ['https://else.test', 'https://app.test'] })).toBe('permit')
  })

  test.each<[object, RegExp]>([
    [{ iss: 'https://other.test' }, /takes no tokens of https:\/\/other.test/],
    [{ iss: 'https://as.test/' }, /takes no tokens of/],
    [{ iss: 'HTTPS://AS.TEST' }, /takes no tokens of/],
    [{ aud: 'https://else.test' }, /aud does not name https:\/\/app.test/],
    [{ aud: ['https://app.test/'] }, /aud does not name/],
  ])('takes none with %j, before the PDP is asked', async (claims, says) => {
    expect(await codeOf(claims)).toMatch(/^token_invalid: /)
    expect(await codeOf(claims)).toMatch(says)
  })

  test('only notes it in shadow mode', async () => {
    expect(await codeOf({ iss: 'https://other.test' }, true)).toBe('permit')
  })
})

describe('a route file', () => {
  const ready = (routes: string): string =>
    routeFile(routes).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
  test.each([
    ['issuers: https://typo.test', 'https://typo.test is not one of https://as.test'],
    ['audience: [https://app.test, other]', 'other is not one of https://app.test'],
    ['issuers: []', 'issuers must have at least one item'],
    ['issuers: 7', 'issuers must be a string'],
  ])('with %s is refused', (option, says) => {
    const { issues } = parseRouteFile(ready(`GET /x: {check: signed_in, ${option}}`))
    expect(issues.map(({ message }) => message).join('\n')).toContain(says)
  })

  test('has neither on a public route', () => {
    const { issues } = parseRouteFile(ready('GET /x: {check: public, issuers: https://as.test}'))
    expect(issues[0]?.message).toBe('issuers and audience cannot be used on a public route')
  })

  test.each([
    [NARROW, 'GET /x: signed_in', 1],
    [NARROW, NARROW.replace('issuers: https://as.test, ', ''), 1],
    ['GET /x: signed_in', NARROW, 0],
    [NARROW, NARROW, 0],
  ])('%s, and then %s opens as much', async (former, next, count) => {
    const [before, now] = [former, next].map((routes) => loadFile(ready(routes)).routes)
    expect(await openedRoutes(before ?? [], now ?? [])).toHaveLength(count)
  })
})
