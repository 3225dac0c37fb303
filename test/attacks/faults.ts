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
  const failures: { readonly [name: string]: Script } = {
    'sleep 10s': () => null,
    '200 empty': (asked) => withDecision(answer(asked), { active: true, permissions: [] }),
    'string true': (asked) => withDecision(answer(asked), { permissions: [] }),
    '500 allow body': () => 'store_unavailable',
    '302': () => 'moved',
    'html 502': () => '<html>502</html>',
    'short batch': (asked) => withDecision(answer(asked), { permissions: [] }),
    'grpc unavailable': () => 'store_unavailable',
    'error+deny': (asked) => partly(answer(asked), false),
    'error+allow': (asked) => partly(answer(asked), true),
  }
  if (typeof pdp === 'string' && failures[pdp] !== undefined) return failures[pdp]
  throw new Skip(`the PDP fault ${String(pdp)} is not known`)
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

export async function keySets(fixture: Fixture, keyring: Keyring, { jwks }: Config): Promise<KeySets> {
  const sets = new Map<string, { keys: unknown[] }>()
  for (const { iss, kid, key } of fixture.issuers) {
    const jwk = { ...(await exportJWK(keyring(key).publicKey)), kid }
    sets.set(iss, { keys: [jwk] })
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
      if (url === `${issuer}/jwks`) return Response.json(keys)
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
