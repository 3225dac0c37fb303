/** Input that no good client sends, and what every answer to it must be like. */
import { expect } from 'vitest'
import { VERIFIER } from '../flow.ts'
import { PASSWORD, parseObject, REDIRECT, SECRET, type World } from '../harness.ts'
import { digestOf } from './forge.ts'

export type Form = { readonly [name: string]: string }
export type Received = { readonly status: number; readonly headers: Headers; readonly text: string }

export const basic = (id = 'flows', secret = SECRET) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
/** What asks for a code, without a mistake. */
export const codeRequest = (): Form => ({
  ...{ client_id: 'flows', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid', state: 'st', nonce: 'n' },
  ...{ code_challenge: digestOf(VERIFIER), code_challenge_method: 'S256' },
})

/** To the world that `current` gives, which is there only when the tests run. */
export function createSender(current: () => World) {
  async function send(path: string, init: RequestInit): Promise<Received> {
    const response = await fetch(current().issuer + path, { redirect: 'manual', ...init })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  function post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Form = {}): Promise<Received> {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return send(path, { method: 'POST', headers: { ...type, authorization: basic(), ...headers }, body })
  }
  return { send, post }
}

const PARAMETERS = [
  ...['client_id', 'client_secret', 'client_assertion', 'client_assertion_type', 'grant_type', 'code', 'code_verifier'],
  ...['redirect_uri', 'refresh_token', 'device_code', 'auth_req_id', 'subject_token', 'subject_token_type'],
  ...['actor_token', 'actor_token_type', 'requested_token_type', 'audience', 'resource', 'scope', 'organization'],
  ...['token', 'token_type_hint', 'login_hint', 'login_hint_token', 'id_token_hint', 'binding_message', 'user_code'],
  ...['requested_expiry', 'acr_values', 'max_age', 'prompt', 'claims', 'nonce', 'state', 'response_type'],
  ...['response_mode', 'code_challenge', 'code_challenge_method', 'request', 'request_uri', 'dpop_jkt', 'display'],
  ...['ui_locales', 'claims_locales', 'registration', 'authorization_details', '__proto__', 'constructor', 'toString'],
]
export const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
export const jwt = (payload: string) =>
  `${Buffer.from('{"alg":"ES256","typ":"dpop+jwt"}').toString('base64url')}.${Buffer.from(payload).toString('base64url')}.AAAA`
/** Percent-encoded already. */
const VALUES: { readonly [what: string]: string } = {
  nothing: '',
  NUL: 'a%00b',
  'a byte that is not UTF-8': '%ff%fe',
  'half of a surrogate pair': '%ed%a0%80',
  'line breaks': 'a%0d%0aSet-Cookie%3a%20x%3dy',
  'a bad escape': '%zz%',
  markup: '%3Cscript%3Ealert(1)%3C%2Fscript%3E',
  SQL: encodeURIComponent(`'; drop table users; --`),
  'a long text': 'x'.repeat(9_000),
  'deep JSON': encodeURIComponent(deep(2_000)),
  'deep JSON in a JWT': jwt(`{"iss":"flows","sub":"flows","a":${deep(2_000)}}`),
  'JSON of another type': encodeURIComponent('{"id_token":"x","userinfo":[1]}'),
  'a number': '-1e309',
  'an object': '%7B%22%24ne%22%3A1%7D',
}

type BadCase = { readonly name: string; readonly what: string; readonly value: string }

/** Every parameter with every value: the share of number `at` of `count`. */
export function badCases(at: number, count: number): readonly BadCase[] {
  const all = PARAMETERS.flatMap((name) => Object.entries(VALUES).map(([what, value]) => ({ name, what, value })))
  return all.filter((_, index) => index % count === at % count)
}

export const CODES = new Set([
  ...['invalid_request', 'invalid_client', 'invalid_grant', 'unauthorized_client', 'unsupported_grant_type'], // RFC 6749
  ...['invalid_scope', 'access_denied', 'unsupported_response_type'],
  ...['unsupported_token_type'], // RFC 7009
  ...['authorization_pending', 'slow_down', 'expired_token'], // RFC 8628
  ...['invalid_target'], // RFC 8707
  ...['invalid_request_uri', 'invalid_request_object', 'request_not_supported', 'request_uri_not_supported'], // RFC 9101
  ...['invalid_dpop_proof', 'use_dpop_nonce'], // RFC 9449
  ...['unmet_authentication_requirements'], // RFC 9470
  ...['login_required', 'consent_required', 'interaction_required', 'registration_not_supported'], // OpenID Connect
  ...['expired_login_hint_token', 'unknown_user_id', 'missing_user_code', 'invalid_user_code'], // CIBA
  ...['invalid_binding_message'],
])
const INSIDE =
  /node_modules|\.[jt]s:\d|\bat \S+ \(|oidc_record|grant_binding|postgres|syntax error|\$scrypt|\$sha256|undefined|\[object/i

export function expectDecent(answer: Received, why: string): void {
  const { status, headers, text } = answer
  const shown = `${why}: ${status} ${text.slice(0, 200)}`
  expect(status, shown).toBeLessThan(500)
  expect(text.match(INSIDE)?.[0], shown).toBeUndefined()
  for (const secret of [SECRET, PASSWORD]) expect(text.includes(secret), shown).toBe(false)
  if (status < 400 || !(headers.get('content-type') ?? '').startsWith('application/json')) return
  const body = parseObject(text)
  expect(CODES.has(String(body.error)), shown).toBe(true)
  expect(
    Object.keys(body).filter((name) => !/^(error|error_description|scope|iss|state)$/.test(name)),
    shown,
  ).toEqual([])
  // RFC 6749 section 5.2: no quotes and no backslashes, and nothing but ASCII.
  expect(String(body.error_description ?? ''), shown).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/)
  if (status === 401) expect(headers.get('www-authenticate'), shown).toMatch(/^Basic |^Bearer |^DPoP /)
}

/** Lines of the log that report a failure: an input that nobody thought of. */
export const failures = ({ log }: World): readonly string[] => log.filter((line) => line.includes('identity_failed'))

export async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += 16) await Promise.all(items.slice(i, i + 16).map(work))
}
