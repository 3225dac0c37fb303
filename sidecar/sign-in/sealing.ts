/** Seals what a browser or an address carries for the sidecar, so that nobody else can read, make or change it. */
import { masterKeysOf, open, seal } from '../../pdp/shared/base/encryption.ts'

/** A value that is sealed as one kind does not open as another. */
export type SealedKind = 'session' | 'ticket' | 'record' | 'state' | 'back'
export type Sealing = {
  seal(kind: SealedKind, value: string): string
  /** Null for what was not sealed here as this kind, byte for byte. */
  open(kind: SealedKind, text: string): string | null
}

const FORM = /^v1\.[A-Za-z0-9_-]+$/

/** The first key seals, all of them open. `place`: the sidecars in front of another service open nothing of these. */
export function createSealing(keys: readonly [Buffer, ...Buffer[]], site: string): Sealing {
  const [first, ...others] = keys
  const masterKeys = masterKeysOf(first, ...others)
  const nameOf = (kind: SealedKind): string => `sign-in ${kind} ${site}`
  return {
    seal: (kind, value) => seal(masterKeys.derive(`sign-in ${kind}`), nameOf(kind), value),
    open(kind, text) {
      // Another spelling of the same bytes is not what was sealed.
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
