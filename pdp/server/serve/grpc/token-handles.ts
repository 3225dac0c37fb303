/** The tokens that a stream has sent, by the handles that refer to them: a bounded table. */
import { TOKEN_CHARS_MAX } from '../../../shared/token/jws.ts'
import type { Holding } from './budgets.ts'

const HANDLES_MAX = 10_000
const CHARACTERS_MAX = 16 * 1024 * 1024

export type Handles = {
  define(handle: number, token: string): void
  find(handle: number): string | undefined
  /** At the end of the stream. */
  clear(): void
}

/**
 * The oldest definition is dropped first. If the caller's streams already hold their maximum, the newest is not kept: its
 * questions get `handle_unknown`, and the caller sends the token again.
 */
export function createHandles(holding: Holding): Handles {
  const tokens = new Map<number, string>()
  let charactersCount = 0

  function forget(handle: number): void {
    const { length } = tokens.get(handle) ?? ''
    holding.give('tokenCharacters', length)
    charactersCount -= length
    tokens.delete(handle)
  }

  /** False if the table was empty. */
  function forgetOldest(): boolean {
    const [oldest] = tokens.keys()
    if (oldest === undefined) return false
    forget(oldest)
    return true
  }

  return {
    define(handle, token) {
      forget(handle)
      const kept = token.length > TOKEN_CHARS_MAX ? '' : token
      while (tokens.size >= HANDLES_MAX || charactersCount + kept.length > CHARACTERS_MAX) forgetOldest()
      while (!holding.take('tokenCharacters', kept.length)) if (!forgetOldest()) return
      tokens.set(handle, kept)
      charactersCount += kept.length
    },
    find: (handle) => tokens.get(handle),
    clear() {
      while (forgetOldest());
    },
  }
}
