/** The contract of a cache of entitlement values for all replicas, a cache without content, and the MAC over a value. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { ENFORCEMENTS, type Entitlement } from '../../../shared/domain/entitlement.ts'

/** An entitlement or null, and the source's state when it was read. */
export type StatedValue = { readonly state: string; readonly entitlement: Entitlement | null }
/** All that a cached value depends on, besides its key. */
export type Slot = {
  readonly source: string
  readonly organization: string
  readonly version: number
  readonly writeId: string
}

/**
 * A cache can only save time: neither method throws, and both end within a short deadline.
 *
 * @example
 * ```ts
 * const sharedCache: SharedCache = await redisSharedCache({ url: 'redis://localhost', masterKey: Buffer.alloc(32, 1), onError: console.error })
 * ```
 */
export interface SharedCache {
  /** Values that were written for exactly this slot and key. Values that are missing, not authentic or late are absent. */
  read(slot: Slot, keys: readonly string[]): Promise<ReadonlyMap<string, StatedValue>>
  /** Kept for at most `keptMs` milliseconds, or not at all. */
  write(slot: Slot, values: ReadonlyMap<string, StatedValue>, keptMs: number): Promise<void>
  close(): void
}

/** The shared cache of a PDP without Redis. */
export function noSharedCache(): SharedCache {
  return { read: async () => new Map(), write: async () => undefined, close: () => undefined }
}

const FORM = 'v1'

/** The name of a value in the cache: one for each slot and key, without line breaks. */
export const slotName = ({ source, organization, version, writeId }: Slot, key: string): string =>
  JSON.stringify([source, organization, version, writeId, key])

/** The value with a MAC over it and its name, so that no other name can have it. */
export function sealValue(secret: Buffer, name: string, { state, entitlement }: StatedValue): string {
  const text = JSON.stringify({ state, entitlement })
  return `${FORM}.${code(secret, name, text).toString('base64url')}.${text}`
}

/** The value; null unless `sealed` is exactly what sealValue returned for this secret and name. */
export function openValue(secret: Buffer, name: string, sealed: string): StatedValue | null {
  const [, given = '', text = ''] = /^v1\.([A-Za-z0-9_-]{43})\.(.*)$/s.exec(sealed) ?? []
  const mac = Buffer.from(given, 'base64url')
  const expected = code(secret, name, text)
  if (mac.toString('base64url') !== given || mac.length !== expected.length || !timingSafeEqual(mac, expected))
    return null
  return parseValue(JSON.parse(text))
}

const code = (secret: Buffer, name: string, text: string): Buffer =>
  createHmac('sha256', secret).update(`${FORM}\n${name}\n${text}`).digest()

/** Reads an authentic value; null when another release wrote it in another form. */
function parseValue(value: unknown): StatedValue | null {
  if (typeof value !== 'object' || value === null || !('state' in value && 'entitlement' in value)) return null
  const { state, entitlement } = value
  if (typeof state !== 'string' || typeof entitlement !== 'object') return null
  if (entitlement === null) return { state, entitlement }
  if (!('enforcement' in entitlement && 'value' in entitlement)) return null
  const enforcement = ENFORCEMENTS.find((known) => known === entitlement.enforcement)
  if (enforcement === undefined || typeof entitlement.value !== 'object' || entitlement.value === null) return null
  return { state, entitlement: { value: Object.fromEntries(Object.entries(entitlement.value)), enforcement } }
}
