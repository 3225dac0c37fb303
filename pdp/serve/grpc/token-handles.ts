/** The tokens that a stream has shown, by the handles that stand for them: a bounded table. */
import type { Holding } from './budgets.ts'

const HANDLES_MAX = 10_000
const CHARACTERS_MAX = 16 * 1024 * 1024
/** No token of ours is longer, nor is one that a header field could carry. */
const TOKEN_CHARACTERS_MAX = 16_384

export type Handles = {
  define(handle: number, token: string): void
  find(handle: number): string | undefined
  /** At the end of the stream. */
  clear(): void
}

/**
 * The oldest definition goes first, and the newest is not kept where the caller's streams hold all that they may already: its
 * owner is told `handle_unknown` and sends the token again.
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

  /** False when there was none. */
  function forgetOldest(): boolean {
    const [oldest] = tokens.keys()
    if (oldest === undefined) return false
    forget(oldest)
    return true
  }

  return {
    define(handle, token) {
      forget(handle)
      const kept = token.length > TOKEN_CHARACTERS_MAX ? '' : token
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
