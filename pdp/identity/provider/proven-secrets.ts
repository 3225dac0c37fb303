/** Remembers keyed digests of secrets that were right a short while ago, so that not each request of a client costs a slow hash. */
import { createHmac, randomBytes } from 'node:crypto'
import { BoundedMap } from '../../shared/base/bounded-map.ts'

const KEPT_MS = 300_000
const SECRETS_MAX = 10_000

export type ProvenSecrets = {
  /** True if the secret was right for the hash `stored`. A changed secret has another hash, so the old one is forgotten. */
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
