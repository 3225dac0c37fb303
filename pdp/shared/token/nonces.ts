/** Stateless DPoP nonces (RFC 9449 sections 8 and 9): a time and its HMAC, so that every replica accepts them. */
import { createHmac, timingSafeEqual } from 'node:crypto'

export type Nonces = {
  /** The current nonce. */
  current(): string
  /** `fresh`: valid. `aging`: valid, but the client should get a new one. `bad`: not from this server, or too old. */
  classify(nonce: unknown): 'fresh' | 'aging' | 'bad'
}

const STEP_MS = 30_000
/** For how many steps after its own a nonce is valid: at most two and a half minutes. */
const STEPS_MAX = 4
const SEAL_BYTES = 16
const FORM = /^([0-9a-z]{1,10})\.([A-Za-z0-9_-]{22})$/

/** `secret` is shared by all replicas, at least 32 bytes. */
export function createNonces({ secret, clock }: { readonly secret: Buffer; readonly clock: () => number }): Nonces {
  if (secret.length < 32) throw new TypeError('the secret for nonces must have at least 32 bytes')
  let made = { step: -1, nonce: '' }

  const stepNow = (): number => Math.floor(clock() / STEP_MS)
  const seal = (step: number): Buffer =>
    createHmac('sha256', secret).update(`dpop-nonce ${step}`).digest().subarray(0, SEAL_BYTES)

  return {
    current() {
      const step = stepNow()
      if (made.step !== step) made = { step, nonce: `${step.toString(36)}.${seal(step).toString('base64url')}` }
      return made.nonce
    },
    classify(nonce) {
      const match = typeof nonce === 'string' ? FORM.exec(nonce) : null
      if (match === null) return 'bad'
      const step = Number.parseInt(match[1] ?? '', 36)
      const age = stepNow() - step
      // Allow one step ahead, because the clocks of replicas differ.
      if (!(age >= -1 && age <= STEPS_MAX)) return 'bad'
      if (!timingSafeEqual(seal(step), Buffer.from(match[2] ?? '', 'base64url'))) return 'bad'
      return age >= 2 ? 'aging' : 'fresh'
    },
  }
}
