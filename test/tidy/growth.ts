/**
 * Which functions of the guarded folders no row of a growth table runs. What takes bytes of somebody without a valid token must
 * have a row; what does not is named here with its reason.
 */

/** Folders that read bytes of a request before its sender is known, and the tables that play them. */
const GUARDED: readonly string[] = [
  'sidecar/http/',
  'sidecar/request/',
  'sidecar/routes/',
  'sidecar/doors/forwarded-request.ts',
  'sidecar/doors/refusal.ts',
  'pdp/shared/token/authorization.ts',
  'pdp/shared/token/jws.ts',
]
const TABLES = /^test\/(?:pdp|sidecar)\/growth\/[\w-]+\.ts$/

/** Files, and functions as `path:name`, that take no bytes of a request, by what they take. */
const OTHERS: { readonly [place: string]: string } = {
  'sidecar/http/client-request.ts': 'a request that is parsed already; it copies nothing',
  'sidecar/http/cors.ts:withCors': 'the answer of the service',
  'sidecar/http/cookies.ts:ownCookie': 'names and values of ours',
  'sidecar/http/cookies.ts:withoutOwnCookies': 'the answer of the service',
  'sidecar/http/cleared.ts': 'the route file',
  'sidecar/http/door-fields.ts': 'the route file',
  'sidecar/http/fields.ts:passIssue': 'the route file',
  'sidecar/http/fields.ts:downstreamFields': 'the answer of the service',
  'sidecar/http/grpc.ts:grpcEnd': 'messages of ours',
  'sidecar/http/identity-fields.ts': 'the claims of a verified token',
  'sidecar/http/share.ts': 'counts',
  'sidecar/routes/check-text.ts': 'the route file',
  'sidecar/routes/checks.ts:describeQuestions': 'the command line',
  'sidecar/routes/checks.ts:asksPermission': 'the route file',
  'sidecar/request/host-set.ts': 'the route file',
  'sidecar/routes/patterns.ts:parsePattern': 'the route file',
  'sidecar/routes/patterns.ts:parameterNames': 'the route file',
  'sidecar/routes/patterns.ts:patternText': 'the route file',
  'sidecar/routes/patterns.ts:overlap': 'the route file',
  'sidecar/routes/patterns.ts:foldPattern': 'the route file',
  'sidecar/routes/route.ts': 'the route file',
  'sidecar/routes/route-request.ts:createRouting': 'the route file',
  'sidecar/routes/route-request.ts:createRoutingInTurns': 'the route file',
  'sidecar/routes/route-table.ts:createRouteTableInTurns': 'the route file',
  'sidecar/routes/step-up.ts': 'the claims of a verified token',
  'sidecar/routes/template.ts': 'the route file',
}

const EXPORTED = /^export (?:async )?(?:function\*? (\w+)|const (\w+) = (?:async )?(?:<[^=]*>)?\()/gm
const NAMED = /'((?:pdp|sidecar)\/[\w/-]+\.ts:\w+)'/g

/** Functions without a row, and names in tables that no file exports. */
export function withoutGrowth(tree: ReadonlyMap<string, string>): { readonly [place: string]: number } {
  const exported = [...tree].flatMap(([path, text]) =>
    [...text.matchAll(EXPORTED)].map(([, one, other]) => `${path}:${one ?? other}`),
  )
  const named = new Set(
    [...tree].flatMap(([path, text]) =>
      TABLES.test(path) ? [...text.matchAll(NAMED)].map(([, name = '']) => name) : [],
    ),
  )
  const isExcused = (place: string): boolean =>
    Object.hasOwn(OTHERS, place) || Object.hasOwn(OTHERS, place.replace(/:.*/, ''))
  const isGuarded = (place: string): boolean => GUARDED.some((folder) => place.startsWith(folder))
  const missing = exported.filter((place) => isGuarded(place) && !named.has(place) && !isExcused(place))
  const stale = [...named].filter((place) => !exported.includes(place))
  return Object.fromEntries([...missing, ...stale].map((place) => [place, 1]))
}
