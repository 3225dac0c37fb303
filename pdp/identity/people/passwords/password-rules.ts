/** Which passwords people may choose: long enough, and not one that everybody tries first (NIST SP 800-63B section 3.1.1.2). */
import { hash } from 'node:crypto'
import { COMMON_PASSWORDS } from './common-passwords.ts'

const CHARACTERS_MIN = 8
const CHARACTERS_MAX = 256

export type PasswordProblem = 'short' | 'long' | 'breached' | 'different'
/** Whether a password is in a list of those that are known. Throws Error when the list cannot be read. */
export type KnownPasswords = { has(sha1: string): Promise<boolean> }
export type PasswordRules = {
  /** Null: it may be chosen. `repeated`: what was typed once more. */
  problem(chosen: {
    readonly password: string
    readonly repeated: string
    readonly email: string | null
  }): Promise<PasswordProblem | null>
}

/** `list`: besides the built-in one. */
export function createPasswordRules({ list }: { readonly list: KnownPasswords | null }): PasswordRules {
  return {
    async problem({ password, repeated, email }) {
      if (password.length > CHARACTERS_MAX) return 'long'
      if ([...password].length < CHARACTERS_MIN) return 'short'
      if (password !== repeated) return 'different'
      const folded = password.toLowerCase()
      if (COMMON_PASSWORDS.has(folded) || folded === email?.toLowerCase()) return 'breached'
      // Lists hold passwords as they were typed, which is mostly composed.
      const typed = new Set([password, password.normalize('NFC')])
      for (const text of typed) if (await list?.has(sha1Of(text))) return 'breached'
      return null
    },
  }
}

/** The form of the lists. It protects nothing here. */
const sha1Of = (text: string): string => hash('sha1', text, 'hex').toUpperCase()
