/** Faults in the path of a request through the sidecar. */
import { type Group, inFile } from './mutant.ts'

const enforce = inFile('sidecar/enforce/enforce.ts')
const preflight = inFile('sidecar/enforce/preflight.ts')
const reevaluate = inFile('sidecar/enforce/reevaluate.ts')
const stages = inFile('sidecar/enforce/stages.ts')
const denial = inFile('sidecar/enforce/denial.ts')
const checks = inFile('sidecar/routes/checks.ts')
const form = inFile('sidecar/routes/value-readings.ts')
const query = inFile('sidecar/routes/query.ts')
const values = inFile('sidecar/routes/values.ts')

export const SIDECAR_GROUPS: readonly Group[] = [
  {
    name: 'enforce',
    tests: ['enforce', 'shadow', 'reevaluate', 'pipeline', 'denial-response'].map(
      (name) => `test/sidecar/enforce/${name}.test.ts`,
    ),
    mutants: [
      enforce(
        'a denial on a known route is permitted',
        "stage.stage === 'arrived' || !isShadowable(denial)) return denial",
        "stage.stage === 'arrived') return denial",
      ),
      enforce(
        'a public route takes no place',
        'known === routing ? admission.enter(routing.route, null) : null',
        'null',
      ),
      enforce(
        'a place for the subject is not waited for',
        'if (entering !== null) await entering // RequestError\n    const answer',
        'const answer',
      ),
      enforce('a turn at the PDP is not waited for', 'if (turn !== null) await turn // RequestError', ''),
      enforce('a turn at the PDP never ends', 'admission.answered()', ''),
      enforce('a proof is not waited for', 'authenticating instanceof Promise ? await authenticating :', ''),
      enforce(
        'a handshake is not checked',
        "if (upgrade) checkHandshake(request, routing.route) // RequestError\n    if (routing.stage === 'public') {",
        "if (routing.stage === 'public') {",
      ),
      preflight(
        'the resource metadata is served to POST',
        "const isRead = method === 'GET' || method === 'HEAD'",
        'const isRead = true',
      ),
      enforce(
        'a permit lasts after its token',
        'expiresAtMs: claims?.expiresAtMs ?? Number.POSITIVE_INFINITY,',
        'expiresAtMs: Number.MAX_SAFE_INTEGER,',
      ),
      enforce('an exchange ends on a route in shadow mode', 'basis: stage.route.shadow ? null : basis', 'basis'),
      reevaluate('new rules of step-up are not applied', 'sameStepUp ? null : route.stepUp', 'null'),
      enforce('step-up is demanded with each answer', 'next = null\n      return null', 'return null'),
      enforce('a former proof is verified again', 'former !== null && former.identity !== null', 'false'),
      enforce('an unauthenticated sender counts as proven', 'former !== null && former.identity !== null', 'true'),
      stages(
        'a proof that is not demanded',
        "(jkt === null && credentials.scheme !== 'dpop')",
        "credentials.scheme !== 'dpop'",
      ),
      stages('a proof makes an unbound token bound', "(jkt === null && credentials.scheme !== 'dpop')", 'jkt === null'),
      stages(
        'a bound token as a bearer token',
        "if (credentials.scheme !== 'dpop') throw",
        "if (credentials.scheme === 'dpop' && jkt === '') throw",
      ),
      stages('a proof for another path', '{request.target.path}`', '{request.target.raw}`'),
      stages(
        'an inactive token',
        'if (!answer.active) return',
        'if (!answer.active && claims.organization !== null && questions.permissions.length === 0) return',
      ),
      stages(
        'a sign-in that is too weak',
        'return satisfies(signIn, route.stepUp, clock()) ? null :',
        'return satisfies(signIn, route.stepUp, clock()) || signIn.acr !== null ? null :',
      ),
      stages(
        'the sign-in that a token names itself',
        'externalIssuers.has(claims.issuer) ? signInOf(claims.all) : answer.signIn',
        'signInOf(claims.all)',
      ),
      stages(
        'identity headers of a revoked token',
        "reason.code === 'token_invalid' ? null : prepared.identity",
        'prepared.identity',
      ),
      stages('a service that is taken for a user', "isService ? 'service' : 'user'", "'user'"),
      denial('shadow mode for any denial', 'route?.shadow === true && isShadowed(code)', 'route?.shadow === true'),
      denial(
        'a failure that counts as a denial',
        'if (err instanceof PdpUnavailable) return denied(err.code,',
        "if (err instanceof PdpUnavailable) return denied('permission_denied',",
      ),
    ],
  },
  {
    name: 'checks and values',
    tests: ['test/sidecar/routes', 'test/sidecar/enforce/enforce.test.ts'],
    mutants: [
      checks('an undecided check of all', 'undecided ??= denial', ''),
      checks('an empty list of any', "return first ?? { code: 'permission_denied', check: 'any' }", 'return first'),
      checks(
        'undecided counts as allowed',
        "if (result === 'allowed') return null",
        "if (result === 'allowed' || result === 'undecided') return null",
      ),
      checks(
        'an entitlement that is there but not true',
        'answer.entitlements.get(key) === true',
        'answer.entitlements.has(key)',
      ),
      checks('a missing claim', 'if (id === null) return denied(check)', 'if (id === null) return HOLDS'),
      checks(
        'a permission without an organization',
        'if (organization === null) return denied(check)',
        'if (organization === null) return HOLDS',
      ),
      checks(
        'two checks share the answer of the first',
        'resource === question.resource\n',
        'resource !== undefined\n',
      ),
      values('a header field that is there twice', 'if (found.length > 1) throw', 'if (found.length > 9) throw'),
      values(
        'a header field that Connection lists',
        'folded === name && !connectionListed.has(folded)',
        'folded === name',
      ),
      values(
        'a header field that is spelled differently',
        'if (raw[2 * at]?.toLowerCase() !== name) throw',
        'if (raw[2 * at] === undefined) throw',
      ),
      query('a query parameter that is there twice', 'if (values.length > 1) throw', 'if (values.length > 9) throw'),
      query('a key that some servers read alike', 'if (isReadAs(key, parts))', 'if (false)'),
      values('a key of the query beside a member of the body', 'if (isReadAs(key, source.parts))', 'if (false)'),
      form('a form beside a checked query', "usesSource(asking, 'query')", 'false'),
      form(
        'a method in the query',
        'return others.length > 0 && others.every((other) => protectsAlike(route, other))',
        'return others.length > 0',
      ),
      form(
        'a member of JSON beside a checked query',
        'if (wanted.some(({ parts }) => isReadAs(key, parts)))',
        'if (false)',
      ),
      form('a form in the text of JSON', "key !== '' && wanted.some", 'false && wanted.some'),
      form('a method in JSON', 'namesJsonMethod(key) &&', 'false &&'),
      form('a body without a media type', "? 'unsaid' : 'form'", "? 'unsaid' : null"),
      form('a body of another type', "(kind === 'other' && bodyBytes === 0)", "kind === 'other'"),
      form('a reader that finds a body without a type', "? 'unsaid' :", '? null :'),
      query('a semicolon in the query', "if (query?.includes(';')) throw", 'if (query === undefined) throw'),
      query('a plus sign in a value', "if (value.includes('+')) throw", "if (value === '+') throw"),
      query(
        'more pairs than parsers read',
        'if (pairs.length > PAIRS_MAX) throw',
        'if (pairs.length > 10 * PAIRS_MAX) throw',
      ),
      values('a value with the character that ends it', 'value.includes(next.charAt(0))', 'value === next'),
      values('an id that is no id', 'if (!isObjectId(id)) throw', 'if (id === null) throw'),
      values('a number that is not exact', 'Number.isSafeInteger(value)', 'Number.isInteger(value)'),
    ],
  },
]
