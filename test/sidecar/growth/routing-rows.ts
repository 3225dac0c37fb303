/** Growth of what finds the route of a request: readings of its path, and what its query and its body could be read as. */
import { parseTarget } from '../../../sidecar/request/target.ts'
import { createRouting, type RoutedRequest, routeRequest } from '../../../sidecar/routes/route-request.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { loadFile, routeFile } from '../support/harness.ts'
import { loadRoutes } from '../support/judge.ts'
import { filled, refusable } from './inputs.ts'
import { TARGET_MOST } from './request-rows.ts'

const RUNS = [
  'sidecar/routes/route-request.ts:routeRequest',
  'sidecar/routes/route-table.ts:createRouteTable',
  'sidecar/routes/path-readings.ts:isPlain',
  'sidecar/routes/path-readings.ts:readingsOf',
  'sidecar/routes/path-readings.ts:isForeseen',
  'sidecar/routes/path-readings.ts:protectsOtherwise',
  'sidecar/routes/path-readings.ts:usesPlaces',
  'sidecar/routes/path-readings.ts:usesRequest',
  'sidecar/routes/path-readings.ts:rulesOf',
  'sidecar/routes/script-paths.ts:isIndexFile',
  'sidecar/routes/script-paths.ts:isScript',
  'sidecar/routes/script-paths.ts:namesScript',
  'sidecar/routes/script-paths.ts:pagesOfData',
  'sidecar/routes/script-paths.ts:scriptReadings',
  'sidecar/routes/script-paths.ts:stemsOf',
  'sidecar/routes/patterns.ts:isWithin',
  'sidecar/routes/patterns.ts:isLiteral',
  'sidecar/routes/patterns.ts:otherSlash',
  'sidecar/routes/patterns.ts:hasText',
  'sidecar/routes/patterns.ts:isAt',
  'sidecar/routes/patterns.ts:isWhole',
  'sidecar/routes/patterns.ts:isSegmentWithin',
  'sidecar/routes/patterns.ts:commonSegment',
  'sidecar/routes/patterns.ts:foldSegment',
  'sidecar/routes/script-paths.ts:formatsOf',
  'sidecar/http/folding.ts:foldText',
]

const LONG_NAME = 'x'.repeat(1_000)

/** Each decodes to something that a reader treats in its own way. */
const UNITS: { readonly [name: string]: string } = {
  'short names': '/a',
  scripts: '/a.pl',
  'scripts between long names': `/${LONG_NAME}/a.pl`,
  pages: '/index.php',
  'names that have a format elsewhere': '/admin',
  'scripts and such names': '/admin/a.pl',
  'scripts and such names between long names': `/${LONG_NAME}/admin/a.pl`,
  'folders of scripts': '/cgi-bin',
  'data of pages': '/__data.json',
  'page data': '/page-data/_next/data',
  sessions: '/(a(b))',
  'sessions in names': '/a(a(b)c(d))b',
  'full-width slashes': '%EF%BC%8F',
  'full-width dots': '/%E2%80%A5',
  'full-width question marks': '/%EF%BC%9F',
  'division slashes': 'a%E2%88%95',
  'ligatures of many letters': '/%EF%B7%BA',
  'compressed files': '/a.gz',
  'images that name images': '/_next/image',
  functions: '/_server',
}

/** One name, in which an expression could try at each place: a line separator is no character of `.` there. */
const NAMES: { readonly [name: string]: string } = {
  dots: '.',
  'dots and spaces': '.%20',
  'streams of Windows': ':$',
  colons: ':',
  'question marks': '%3F',
  brackets: '(',
  'opened sessions': '(a(b)',
  formats: '.php',
  'combining marks': '%CC%81',
  'closing brackets': ')',
}

const ROUTES = `
GET /**: admin system:main
POST /**: public
PUT /**: scope a
GET /admin.html: public
GET /robots.txt: public
GET /admin/index.html: scope b
GET /_next/**: scope c
GET /b/v{n}/**: scope d
GET /b/{name}.csv: scope e
`

/** Each path that begins as the first two do has both. */
const OVERLAPPING = `
GET /b/{x}/**: admin system:main
GET /{y}/a/**: admin system:{y}
GET /b/{x}/a/**: signed_in
GET /{y}/a/{z}/**: signed_in
`

const requestOf = (target: string, method = 'GET'): RoutedRequest => ({
  method,
  target: parseTarget(target),
  host: { hostname: 'app.test', port: null },
  namedHost: null,
  clientAddress: '',
  raw: [],
  names: [],
  bodyBytes: 0,
})

const wide = createRouting(loadRoutes(ROUTES))
const STRIPPED = routeFile('GET /app/**: public\nGET /app/admin: scope a\nGET /app/_next/**: scope b').replace(
  'PDP',
  '127.0.0.1:1',
)
const strippedOf = (more: string) =>
  createRouting(loadFile(STRIPPED.replace('UPSTREAM', `{url: "http://a.test", strip_path: /app${more}}`)))
const stripped = strippedOf('')
const moved = strippedOf(', add_path: /base')
const overlapping = createRouting(loadRoutes(OVERLAPPING))

function row(
  name: string,
  target: (size: number) => string,
  { method = 'GET', runs = RUNS, routing = wide } = {},
): Growth {
  return {
    name,
    runs,
    most: TARGET_MOST,
    at: (size) => {
      const text = target(size)
      return () => refusable(() => routeRequest(routing, requestOf(text, method)))
    },
  }
}

const QUERIES: { readonly [name: string]: string } = {
  methods: '_method=PUT&',
  'encoded keys of methods': '%255fmethod=put;',
  functions: '_action=a&',
  'keys without values': 'm&',
}

const FETCHED: { readonly [name: string]: string } = {
  images: 'url=/a/b.png&',
  'images of scripts': 'url=/a.pl/b.pl/c.pl/d.pl&',
  'images of servers': 'url=https://a.test/&',
}

export const ROUTING_ROWS: readonly Growth[] = [
  ...['/a', '/a.php', '/A', '/index.php'].map((unit) =>
    row(`a path of ${unit} that several routes match`, (size) => filled(size, unit, { before: '/b' }), {
      routing: overlapping,
      runs: [
        'sidecar/routes/route-table.ts:createRouteTable',
        'sidecar/routes/overlaps.ts:judgementOf',
        'sidecar/routes/patterns.ts:cross',
        'sidecar/routes/patterns.ts:mayMatch',
        'sidecar/routes/patterns.ts:narrowest',
        'sidecar/routes/patterns.ts:parametersOf',
      ],
    }),
  ),
  ...Object.entries(UNITS).map(([name, unit]) =>
    row(`a path of ${name}`, (size) => filled(size, unit, { before: '/b' })),
  ),
  ...['/a', '/A', '/a.pl', '/index.php', '/%E2%80%A5', '/_server'].map((unit) =>
    row(`a path of ${unit} of which the service gets the rest`, (size) => filled(size, unit, { before: '/app' }), {
      routing: stripped,
      runs: ['sidecar/routes/path-readings.ts:readingsBelow'],
    }),
  ),
  ...['/a', '/a.pl', '/a/%E2%80%A5', '/%E2%80%A5', '/_server', '/a%EF%BC%8Fb'].map((unit) =>
    row(`a path of ${unit} that the service gets below its own`, (size) => filled(size, unit, { before: '/app' }), {
      routing: moved,
      runs: ['sidecar/routes/path-readings.ts:refuseOutside', 'sidecar/routes/path-readings.ts:namesSent'],
    }),
  ),
  ...Object.entries(NAMES).flatMap(([name, unit]) => [
    row(`a name of ${name}`, (size) => filled(size, unit, { before: '/', after: 'x' })),
    row(`a name of ${name} before a line separator`, (size) =>
      filled(size, unit, { before: '/a', after: '%E2%80%A8' }),
    ),
  ]),
  ...Object.entries(QUERIES).map(([name, unit]) =>
    row(`a query of ${name}`, (size) => filled(size, unit, { before: '/a.pl/b.pl?' }), {
      method: 'POST',
      runs: [
        'sidecar/routes/value-readings.ts:refuseOtherReadings',
        'sidecar/routes/functions.ts:refuseFunction',
        'sidecar/routes/query.ts:decodeAgain',
      ],
    }),
  ),
  ...Object.entries(FETCHED).map(([name, unit]) =>
    row(`a query of ${name}`, (size) => filled(size, unit, { before: '/_next/image?' }), {
      runs: ['sidecar/routes/fetched-paths.ts:refuseFetchedPath', 'sidecar/routes/query.ts:queryPairs'],
    }),
  ),
]
