/** How much of what one core could verify is left when every request has a proof of possession (DPoP). */
import { hash, sign, verify } from 'node:crypto'
import { EmbeddedJWK, jwtVerify } from 'jose'
import { createProofVerifier } from '../../../pdp/shared/token/dpop.ts'
import { ecKeys, type KeyPair, proof, thumbprint } from '../../support/peers/issuer.ts'
import { type Load, withProofs } from './load.ts'
import { type BenchPdp, PATH, RESOURCE } from './pdp.ts'

/** More than can be used up in a second. */
const PROOFS_PER_SECOND = 8_000
const SAMPLES = 4_000

export async function benchProofs(
  load: Load,
  { pdp, seconds }: { readonly pdp: BenchPdp; readonly seconds: number },
): Promise<string> {
  const keys = ecKeys()
  const token = await pdp.token(keys)
  const make = (): Promise<string> => proof({ keys, method: 'GET', url: `${RESOURCE}${PATH}`, token, clock: Date.now })
  const fields = { ...load.fields, Authorization: `DPoP ${token}` }
  // Made before, since making them costs as much as verifying; wrk starts over where they are used up, and is told 401.
  const proofs = await Promise.all(Array.from({ length: PROOFS_PER_SECOND * seconds }, make))
  const { perSecond } = await withProofs({ ...load, fields }, proofs, seconds)
  const signatures = verifySignatures(keys)
  const sample = proofs.slice(0, SAMPLES)
  const whole = await verifyProofs(sample, token, await thumbprint(keys.publicKey))
  const byJose = await verifyByJose(sample)
  return `DPoP: ${perSecond.toFixed(0)}/s, ${(perSecond / signatures).toFixed(2)} of one core's ES256 verification alone (${signatures.toFixed(0)}/s),
  ${(perSecond / whole).toFixed(2)} of verifying whole proofs alone (${whole.toFixed(0)}/s); jose verifies ${byJose.toFixed(0)}/s, without most of our checks`
}

/** Per second: node:crypto alone, with its key at hand. */
function verifySignatures({ privateKey, publicKey }: KeyPair): number {
  const input = Buffer.alloc(512, 'a')
  const signature = sign('sha256', input, privateKey)
  const startedMs = performance.now()
  for (let at = 0; at < SAMPLES; at += 1)
    if (!verify('sha256', input, publicKey, signature)) throw new Error('not verified')
  return SAMPLES / ((performance.now() - startedMs) / 1_000)
}

async function verifyProofs(proofs: readonly string[], token: string, jkt: string): Promise<number> {
  const verifyProof = createProofVerifier({ clock: Date.now, replay: { remember: () => true, seen: () => false } })
  const digest = hash('sha256', token, 'base64url')
  const request = { method: 'GET', url: `${RESOURCE}${PATH}` }
  return ratePerSecond(proofs, (one) => verifyProof({ ...request, proofs: [one] }, { digest, jkt }))
}

/** Signature, typ, key, and the time: no binding to request and token, no replay. */
function verifyByJose(proofs: readonly string[]): Promise<number> {
  const options = { typ: 'dpop+jwt', algorithms: ['ES256'], maxTokenAge: 60 }
  return ratePerSecond(proofs, (one) => jwtVerify(one, EmbeddedJWK, options))
}

async function ratePerSecond(
  proofs: readonly string[],
  verifyOne: (proof: string) => Promise<unknown>,
): Promise<number> {
  const startedMs = performance.now()
  const verifyNext = async (left: string[]): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await verifyOne(one)
  }
  const left = [...proofs]
  // As many at a time as there are connections.
  await Promise.all(Array.from({ length: 32 }, () => verifyNext(left)))
  return proofs.length / ((performance.now() - startedMs) / 1_000)
}
