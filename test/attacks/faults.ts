/** How the parties around the sidecar misbehave in attack cases: the PDP, key sets, and whoever serves them. */
import { generateKeyPairSync } from 'node:crypto'
import { exportJWK } from 'jose'
import type { Fetch } from '../../pdp/token/remote-keys.ts'
import { type Script, tuples } from '../sidecar/support/pdp.ts'
import { type AttackCase, type Fixture, Skip } from './cases.ts'
import type { Keyring } from './credentials.ts'

export type Config = NonNullable<AttackCase['setup']['config']>
type KeySets = Map<string, { keys: unknown[] }>

/** How the PDP misbehaves. Faults of an HTTP PDP are translated to what a gRPC stream can do. */
export function scriptFor({ pdp }: Config, allowed: readonly string[]): Script {
  const answer = tuples(allowed)
  if (pdp === undefined) return answer
  const fault = typeof pdp === 'string' ? FAULTS.find(([form]) => form.test(pdp)) : undefined
  if (fault === undefined) throw new Skip(`the PDP fault ${JSON.stringify(pdp)} is not known`)
  return (asked) => fault[1](answer(asked))
}

type Answer = ReturnType<Script>

/** By what a case calls it; the first that fits is taken. Null: no answer; a text: an error of that code. */
const FAULTS: readonly (readonly [RegExp, (answer: Answer) => Answer])[] = [
  [/^error\+deny$/, (answer) => partly(answer, false)],
  [/^error\+allow$/, (answer) => partly(answer, true)],
  [/sleep|slow|hang|timeout|half.?open|never|drip/i, () => null],
  [/empty|null/i, (answer) => withDecision(answer, { active: true, permissions: [] })],
  [/html/i, () => '<html>502</html>'],
  [/\b30\d\b|redirect/i, () => 'moved'],
  [/\b(?:5\d\d|4\d\d)\b|unavailable|refused|reset|down|dead|dns/i, () => 'store_unavailable'],
  [/json|garbage|rubbish|truncated|broken/i, () => 'not an answer'],
  // A gRPC message has no text or number where a boolean stands: what comes instead is no result at all.
  [/string|number|truthy|"true"|\b1\b|short|fewer|missing/i, (answer) => withDecision(answer, { permissions: [] })],
  [/long|extra|more/i, (answer) => withPermissions(answer, (all) => [...all, ...all])],
  [/order|swap|other|mismatch|wrong/i, (answer) => withPermissions(answer, (all) => all.map(renamed))],
]

type Permissions = Exclude<Answer, string | null>['permissions']

function withPermissions(answer: Answer, change: (permissions: Permissions) => Permissions): Answer {
  return answer === null || typeof answer === 'string' ? answer : { ...answer, permissions: change(answer.permissions) }
}

/** An allow, but of something else than was asked. */
const renamed = (result: Permissions[number]): Permissions[number] => {
  return { ...result, resource: 'invoice:other', allowed: true }
}

/** The first question undecided, the others all answered alike. */
function partly(decision: ReturnType<Script>, allowed: boolean): ReturnType<Script> {
  if (decision === null || typeof decision === 'string') return decision
  const permissions = decision.permissions.map((result, at) =>
    at === 0 ? { ...result, allowed: false, error: 'evaluation_limit' } : { ...result, allowed },
  )
  return { ...decision, permissions }
}

function withDecision(decision: ReturnType<Script>, members: object): ReturnType<Script> {
  return decision === null || typeof decision === 'string' ? decision : { ...decision, ...members }
}

const KEY_SETS = ['oct', 'use=enc', 'dupkid', 'rsa1024', 'empty', 'unreachable', 'slow+huge']
/** What serves the key set instead. */
const KEY_ANSWERS: { readonly [fault: string]: () => Response } = {
  html: () => new Response('<html></html>', { headers: { 'content-type': 'text/html' } }),
  '302': () => new Response('', { status: 302, headers: { location: 'https://evil.test/jwks' } }),
  redirect: () => new Response('', { status: 302, headers: { location: 'https://evil.test/jwks' } }),
  '404': () => new Response('', { status: 404 }),
  '500': () => new Response('', { status: 500 }),
  'not json': () => new Response('keys'),
}

/** Throws Skip for a fault that nobody here knows. */
export async function keySets(fixture: Fixture, keyring: Keyring, { jwks }: Config): Promise<KeySets> {
  const known = typeof jwks === 'string' && (KEY_SETS.includes(jwks) || Object.hasOwn(KEY_ANSWERS, jwks))
  if (jwks !== undefined && !known) throw new Skip(`the key set fault ${JSON.stringify(jwks)} is not known`)
  const sets = new Map<string, { keys: unknown[] }>()
  for (const { iss, kid, key } of fixture.issuers) {
    const jwk = { ...(await exportJWK(keyring(key).publicKey)), kid }
    sets.set(iss, { keys: [jwk] })
    if (jwks === 'empty') sets.set(iss, { keys: [] })
    if (jwks === 'oct') sets.set(iss, { keys: [{ kty: 'oct', k: 'AAAA', kid }] })
    if (jwks === 'use=enc') sets.set(iss, { keys: [{ ...jwk, use: 'enc' }] })
    if (jwks === 'dupkid') sets.set(iss, { keys: [{ ...(await exportJWK(keyring('other').publicKey)), kid }, jwk] })
    if (jwks === 'rsa1024') {
      const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
      sets.set(iss, { keys: [{ ...(await exportJWK(publicKey)), kid }] })
    }
  }
  return sets
}

export function fetchFor({ jwks: fault }: Config, { jwks, fetched }: { jwks: KeySets; fetched: string[] }): Fetch {
  return async (url, { signal }) => {
    fetched.push(url)
    if (fault === 'unreachable') throw new Error('ECONNREFUSED')
    if (fault === 'slow+huge') return new Response(endless(signal))
    for (const [issuer, keys] of jwks) {
      if (url === `${issuer}/.well-known/openid-configuration`)
        return Response.json({ issuer, jwks_uri: `${issuer}/jwks` })
      if (url === `${issuer}/jwks`) return KEY_ANSWERS[String(fault)]?.() ?? Response.json(keys)
    }
    return new Response('', { status: 404 })
  }
}

function endless(signal: AbortSignal): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (signal.aborted) controller.error(signal.reason)
      else controller.enqueue(new Uint8Array(1))
    },
  })
}
