/** Which route of a file a request takes: the most specific path, then the method. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plainOptions } from '../../../sidecar/route-file/options.ts'
import { cross, isWithin, overlap, type Pattern, parsePattern } from '../../../sidecar/routes/patterns.ts'
import { isSameRoute, type Route } from '../../../sidecar/routes/route.ts'
import { createRouteTable } from '../../../sidecar/routes/route-table.ts'
import { effort } from '../../support/effort.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const ready = (routes: string, extra?: string): string =>
  routeFile(routes, extra === undefined ? {} : { extra })
    .replace('UPSTREAM', 'http://127.0.0.1:8080')
    .replace('PDP', '127.0.0.1:9090')
describe('precedence', () => {
  const patternOf = (path: string): Pattern => {
    const pattern = parsePattern(path)
    if (typeof pattern === 'string') throw new Error(pattern)
    return pattern
  }
  const segment = fc.constantFrom('a', 'b', 'A', '')
  const path = fc
    .array(segment, { minLength: 1, maxLength: 4 })
    // Only the last segment of a target can be empty.
    .filter((segments) => !segments.slice(0, -1).includes(''))
  const patternText = fc
    .tuple(fc.array(fc.constantFrom('a', 'b', '{}'), { maxLength: 3 }), fc.constantFrom('', '/', '/**'))
    .map(
      ([parts, end]) =>
        `/${parts.map((part, at) => (part === '{}' ? `{p${at}}` : part)).join('/')}${parts.length === 0 && end !== '' ? end.slice(1) : end}`,
    )
  const routeOf = (text: string): Route => ({
    id: text,
    host: null,
    hostParameter: null,
    method: 'GET',
    mcp: null,
    pattern: patternOf(text),
    // Each one's own.
    withIdentity: false,
    check: { kind: 'scope', name: text },
    ...plainOptions({
      forwardToken: false,
      shadow: false,
      origins: new Set(),
      cors: null,
      guestOrganization: null,
      stripPath: null,
      addPath: null,
    }),
  })
  /** The definition, without any cleverness. */
  function matches({ segments, rest }: Pattern, path: readonly string[], { lax = false } = {}): boolean {
    if (rest ? path.length <= segments.length : path.length !== segments.length) return false
    return segments.every((one, at) => (one.kind === 'literal' ? one.text === path[at] : lax || path[at] !== ''))
  }

  const lower = (text: string): string => text.toLowerCase()
  const folded = ({ segments, rest }: Pattern): Pattern => ({
    segments: segments.map((one) => (one.kind === 'literal' ? { ...one, text: lower(one.text) } : one)),
    rest,
  })
  const equal = (a: Pattern, b: Pattern): boolean => isWithin(a, b) && isWithin(b, a)
  /** Some reader of the path, who folds case or the slash at its end, would take it to a route that is no wider one. */
  function tempting(best: Route, routes: readonly Route[], segments: readonly string[], lax = false): boolean {
    const path = segments.map(lower)
    const other = path.at(-1) === '' ? path.slice(0, -1) : [...path, '']
    return [path, ...(other.length === 0 ? [] : [other])].some((reading) => {
      const having = routes.filter(({ pattern }) => matches(folded(pattern), reading, { lax }))
      const narrowest = having.filter(({ pattern }) =>
        having.every(
          (one) => !isWithin(folded(one.pattern), folded(pattern)) || equal(folded(one.pattern), folded(pattern)),
        ),
      )
      return narrowest.some((route) => route !== best && !isWider(route.pattern, best.pattern))
    })
  }
  /** `wide` has every path of `narrow`, and more: its route has been excepted from it. */
  const isWider = (wide: Pattern, narrow: Pattern): boolean =>
    isWithin(folded(narrow), folded(wide)) && !isWithin(folded(wide), folded(narrow))

  test('within and overlap say of patterns what they say of paths', () => {
    fc.assert(
      fc.property(patternText, patternText, path, (one, two, segments) => {
        const [a, b] = [patternOf(one), patternOf(two)]
        const [inA, inB] = [matches(a, segments), matches(b, segments)]
        if (inA && inB) expect(overlap(a, b)).toBe(true)
        if (isWithin(a, b) && inA) expect(inB).toBe(true)
        if (isWithin(a, b)) expect(overlap(a, b)).toBe(true)
      }),
      { numRuns: effort({ short: 1_000, long: 5_000 }) },
    )
  })

  test('a path is given to the one route within all others that have it, or refused where there is none or for another spelling', () => {
    fc.assert(
      fc.property(fc.uniqueArray(patternText, { maxLength: 6 }), path, (texts, segments) => {
        const routes: Route[] = []
        for (const text of texts) {
          const route = routeOf(text)
          if (!routes.some((other) => isSameRoute(route, other))) routes.push(route)
        }
        const match = createRouteTable(routes).match({
          host: 'app.test',
          method: 'GET',
          path: { segments, written: segments },
        })
        const having = routes.filter(({ pattern }) => matches(pattern, segments))
        const best = having.find((route) => having.every((other) => isWithin(route.pattern, other.pattern)))
        if (match.kind === 'none') expect(having).toEqual([])
        const rival = routes.some(
          ({ pattern }) =>
            best !== undefined && matches(pattern, segments, { lax: true }) && cross(pattern, best.pattern),
        )
        expect(match.kind === 'overlap').toBe((having.length > 0 && best === undefined) || rival)
        if (match.kind === 'route') expect(match.route).toBe(best)
        if (best === undefined || rival) return
        if (tempting(best, routes, segments)) expect(match.kind).toBe('ambiguous')
        if (match.kind === 'ambiguous') expect(tempting(best, routes, segments, true)).toBe(true)
      }),
      { numRuns: effort({ short: 1_000, long: 5_000 }) },
    )
  })

  test('a host with routes of its own has no others', () => {
    const file = loadFile(ready('GET /a: public\n"GET admin.test/b": scope admin'))
    const table = createRouteTable(file.routes)
    const kind = (host: string, path: string): string =>
      table.match({ host, method: 'GET', path: { segments: [path], written: [path] } }).kind
    expect([kind('app.test', 'a'), kind('app.test', 'b'), kind('admin.test', 'a'), kind('admin.test', 'b')]).toEqual([
      'route',
      'none',
      'none',
      'route',
    ])
  })

  test('a route for every method has neither TRACE nor CONNECT', () => {
    const table = createRouteTable(loadFile(ready('"* /a": public\nGET /a: scope a')).routes)
    const match = (method: string) =>
      table.match({ host: 'app.test', method, path: { segments: ['a'], written: ['a'] } })
    expect(match('DELETE')).toMatchObject({ kind: 'route', route: { id: '* /a' } })
    expect(match('HEAD')).toMatchObject({ kind: 'route', route: { id: 'GET /a' } })
    expect([match('TRACE').kind, match('CONNECT').kind]).toEqual(['method', 'method'])
  })
})
