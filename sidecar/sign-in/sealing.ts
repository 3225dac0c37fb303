/** Seals values that a browser or an address keeps for the sidecar: only the sidecar can read, make or change them. */
import { masterKeysOf, open, seal } from '../../pdp/shared/base/encryption.ts'

/** The kind of a sealed value: a value does not open as another kind. */
export type SealedKind = 'session' | 'ticket' | 'record' | 'state' | 'back'
export type Sealing = {
  seal(kind: SealedKind, value: string): string
  /** The text; null for a value that was not sealed here as this kind, byte for byte. */
  open(kind: SealedKind, text: string): string | null
}

const FORM = /^v1\.[A-Za-z0-9_-]+$/

/** `keys`: the first one seals, all of them open. `site`: sidecars in front of another service cannot open the values. */
export function createSealing(keys: readonly [Buffer, ...Buffer[]], site: string): Sealing {
  const [first, ...others] = keys
  const masterKeys = masterKeysOf(first, ...others)
  const nameOf = (kind: SealedKind): string => `sign-in ${kind} ${site}`
  return {
    seal: (kind, value) => seal(masterKeys.derive(`sign-in ${kind}`), nameOf(kind), value),
    open(kind, text) {
      // Base64url allows several spellings of the same bytes; only the one that was sealed here opens.
      if (!FORM.test(text) || Buffer.from(text.slice(3), 'base64url').toString('base64url') !== text.slice(3))
        return null
      try {
        return open(masterKeys.derive(`sign-in ${kind}`), nameOf(kind), text)
      } catch {
        return null
      }
    },
  }
}
