/** Secrets that were right a short while ago, by a keyed digest, so that a client's every request costs no slow hash. */
import { createHmac, randomBytes } from 'node:crypto'
import { BoundedMap } from '../../shared/base/bounded-map.ts'

const KEPT_MS = 300_000
const SECRETS_MAX = 10_000

export type ProvenSecrets = {
  /** `stored`: the hash of now. A secret that was changed is thereby forgotten. */
  has(secret: string, stored: string): boolean
  add(secret: string, stored: string): void
}

export function createProvenSecrets({ clock }: { readonly clock: () => number }): ProvenSecrets {
  const key = randomBytes(32)
  const untilMs = new BoundedMap<string, number>(SECRETS_MAX)
  const digestOf = (secret: string, stored: string): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([stored, secret]))
      .digest('base64url')
  return {
    has: (secret, stored) => (untilMs.get(digestOf(secret, stored)) ?? 0) > clock(),
    add: (secret, stored) => untilMs.set(digestOf(secret, stored), clock() + KEPT_MS),
  }
}
