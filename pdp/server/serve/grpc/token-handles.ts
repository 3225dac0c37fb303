/** The tokens of a stream by their handles, in a table of bounded size. */

import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import { TOKEN_CHARS_MAX } from '../../../shared/token/jws.ts'
import type { Holding } from './budgets.ts'

const HANDLES_MAX = 10_000
const CHARACTERS_MAX = 16 * 1024 * 1024

/**
 * Keeps the newest tokens: the oldest is dropped first. If the caller's streams already hold their maximum, the newest is not kept:
 * its questions get `handle_unknown`, and the caller sends the token again.
 */
export function createHandles(holding: Holding): {
  define(handle: number, token: string): void
  find(handle: number): string | undefined
  /** Forgets all tokens, at the end of the stream. */
  clear(): void
} {
  const tokens = new BoundedMap<number, string>(HANDLES_MAX)
  let charactersCount = 0

  function giveBack({ length }: string): void {
    holding.give('tokenCharacters', length)
    charactersCount -= length
  }

  /** Forgets the oldest handle; false: the table was empty. */
  function forgetOldest(): boolean {
    const oldest = tokens.takeOldest()
    giveBack(oldest ?? '')
    return oldest !== undefined
  }

  return {
    define(handle, token) {
      giveBack(tokens.get(handle) ?? '')
      tokens.delete(handle)
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
