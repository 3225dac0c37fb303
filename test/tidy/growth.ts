/**
 * Which functions of the guarded folders no row of a growth table runs. What takes bytes of somebody without a valid token must
 * have a row; what does not is named here with its reason.
 */

/** Folders that read bytes of a request before its sender is known, and the tables that play them. */
const GUARDED: readonly string[] = [
  'sidecar/http/',
  'sidecar/request/',
  'sidecar/routes/',
  'sidecar/doors/',
  'sidecar/listener/',
  'sidecar/sign-in/',
  'pdp/shared/base/',
  'pdp/shared/token/',
  'pdp/server/serve/authentication/',
  'pdp/server/serve/http/',
  'pdp/identity/oauth/forms.ts',
]
const TABLES = /^test\/(?:pdp|sidecar)\/growth\/[\w-]+\.ts$/

/** Files, and functions as `path:name`, that take no bytes of a request, by what they take. */
const OTHERS: { readonly [place: string]: string } = {
  'sidecar/http/client-request.ts': 'a request that is parsed already; it copies nothing',
  'sidecar/http/assertion.ts': 'the claims of a verified token',
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
  'sidecar/doors/caller.ts': 'a name of the gateway and its secret, which are compared',
  'sidecar/doors/check-response.ts': 'answers of ours',
  'sidecar/doors/deny-errors.ts': 'errors of ours',
  'sidecar/doors/ext-authz.ts': 'the route file; its questions are read by readCheck',
  'sidecar/doors/forward-auth.ts': 'the route file; its questions are read by readForwarded',
  'sidecar/doors/held-request.ts': 'a request that readCheck or readForwarded has read',
  'sidecar/doors/open-doors.ts': 'the route file',
  'sidecar/doors/removed-fields.ts': 'the route file',
  'sidecar/doors/service-fields.ts': 'a permitted request',
  'sidecar/doors/socket-file.ts': 'the route file',
  'sidecar/listener/proxy-header.ts:expectProxyHeaders': 'the bytes that readProxyHeader reads',
  'sidecar/listener/cut-response.ts': 'answers',
  'sidecar/sign-in/begin-sign-in.ts:choose': 'the route file',
  'sidecar/sign-in/begin-sign-in.ts:landedCookie': 'a goal that was sealed here',
  'sidecar/sign-in/context.ts': 'the route file',
  'sidecar/sign-in/memory-redis.ts': 'keys of sessions of ours',
  'sidecar/sign-in/memory.ts': 'keys of sessions of ours',
  'sidecar/sign-in/pages.ts': 'texts of ours',
  'sidecar/sign-in/provider.ts': 'the route file, and answers of the provider',
  'sidecar/sign-in/refresh.ts': 'sessions that were sealed here',
  'sidecar/sign-in/session.ts': 'what was sealed here',
  'sidecar/sign-in/session-cookies.ts:removal': 'names of cookies of ours',
  'sidecar/sign-in/session-cookies.ts:splitSession': 'what was sealed here',
  'sidecar/sign-in/sign-in.ts': 'the route file',
  'sidecar/sign-in/sign-out.ts:askToSignOut': 'nothing',
  'sidecar/sign-in/sign-out.ts:signedOut': 'nothing',
  'sidecar/sign-in/token-owner.ts': 'claims of a verified token',
  'pdp/shared/token/algorithms.ts:keySuits': 'keys of a key set',
  'pdp/shared/token/challenge.ts': 'words of ours',
  'pdp/shared/token/claims.ts': 'claims of a verified token',
  'pdp/shared/token/issuer-claims.ts:claimAt': 'claims of a verified token',
  'pdp/shared/token/issuer-claims.ts:readIssuerClaims': 'claims of a verified token',
  'pdp/shared/token/keys.ts:localKeys': 'key sets',
  'pdp/shared/token/keys.ts:createKeySource': 'key sets',
  'pdp/shared/token/keys.ts:importKey': 'key sets',
  'pdp/shared/token/opaque-tokens.ts:requireIntrospected': 'answers of an issuer',
  'pdp/shared/token/provider-failure.ts': 'answers of a provider',
  'pdp/shared/token/redis.ts': 'settings',
  'pdp/shared/token/remote-keys.ts:isSafeKeyUrl': 'metadata of an issuer',
  'pdp/shared/token/remote-keys.ts:readJson': 'answers of an issuer',
  'pdp/shared/token/remote-keys.ts:remoteKeys': 'key sets',
  'pdp/shared/token/replay-redis.ts': 'digests of verified proofs',
  'pdp/shared/token/replay.ts': 'ids of verified proofs',
  'pdp/shared/base/addresses.ts:parseNetwork': 'settings',
  'pdp/shared/base/attempts.ts': 'counts',
  'pdp/shared/base/circuit-breaker.ts': 'counts',
  'pdp/shared/base/client-address.ts:parseNetworks': 'settings',
  'pdp/shared/base/encryption.ts:deriveKey': 'keys of ours',
  'pdp/shared/base/encryption.ts:fingerprintOf': 'keys of ours',
  'pdp/shared/base/encryption.ts:masterKeysOf': 'keys of ours',
  'pdp/shared/base/encryption.ts:seal': 'what we keep',
  'pdp/shared/base/error-message.ts': 'errors',
  'pdp/shared/base/guarded-post.ts': 'addresses that a known caller has registered',
  'pdp/shared/base/http-json.ts': 'answers of others',
  'pdp/shared/base/problems.ts': 'words of ours',
  'pdp/shared/base/with-timeout.ts': 'nothing',
  'pdp/shared/base/yaml.ts': 'bodies of known callers',
  'pdp/server/serve/authentication/admission.ts': 'counts',
  'pdp/server/serve/authentication/authenticate.ts:lacksScopes': 'a known caller',
  'pdp/server/serve/authentication/authenticate.ts:reachOf': 'a known caller',
  'pdp/server/serve/authentication/authenticate.ts:requireReader': 'a known caller',
  'pdp/server/serve/authentication/authenticate.ts:requireUnbound': 'a known caller',
  'pdp/server/serve/authentication/authenticate.ts:requireWithin': 'a known caller',
  'pdp/server/serve/authentication/credentials.ts:unproven': 'words of ours',
  'pdp/server/serve/authentication/grpc-callers.ts': 'one token, which credentials.ts and verify.ts read, too',
  'pdp/server/serve/authentication/people.ts': 'a known caller',
  'pdp/server/serve/authentication/service-account.ts': 'a token, which parseJws and findSigner read, and settings',
  'pdp/server/serve/http/bodies.ts:isStream': 'nothing',
  'pdp/server/serve/http/bodies.ts:piecesOf': 'bodies of known callers',
  'pdp/server/serve/http/conditions.ts:requireConditions': 'a known caller',
  'pdp/server/serve/http/conditions.ts:tagOf': 'what we keep',
  'pdp/server/serve/http/description.ts': 'schemas of ours',
  'pdp/server/serve/http/draining.ts': 'nothing',
  'pdp/server/serve/http/late-schemas.ts': 'schemas of ours',
  'pdp/server/serve/http/named-schemas.ts': 'schemas of ours',
  'pdp/server/serve/http/pagination.ts': 'a known caller',
  'pdp/server/serve/http/schema-examples.ts': 'schemas of ours',
  'pdp/server/serve/http/schemas.ts': 'schemas of ours',
  'pdp/server/serve/http/spans.ts': 'nothing',
  'pdp/server/serve/http/status.ts:isFault': 'codes of ours',
  'sidecar/routes/checks.ts:checkText': 'the route file',
  'sidecar/request/inbound.ts:fromOrigin': 'a request that is parsed already',
  'sidecar/routes/mcp-rules.ts:listedPart': 'the route file',
  'sidecar/routes/mcp-rules.ts:parseUriPattern': 'the route file',
  'sidecar/routes/checks.ts:describeQuestions': 'the command line',
  'sidecar/routes/checks.ts:asksPermission': 'the route file',
  'sidecar/routes/checks.ts:admitsGuests': 'the route file',
  'sidecar/routes/checks.ts:isUndecided': 'answers of the PDP',
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
