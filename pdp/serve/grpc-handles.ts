/** The tokens that a stream has shown, by the handles that stand for them: a bounded table. */

const HANDLES_MAX = 10_000
const CHARACTERS_MAX = 16 * 1024 * 1024
/** No token of ours is longer, nor is one that a header field could carry. */
const TOKEN_CHARACTERS_MAX = 16_384

export type Handles = {
  define(handle: number, token: string): void
  find(handle: number): string | undefined
}

/** The oldest definition goes first; its owner is told `handle_unknown` and sends the token again. */
export function createHandles(): Handles {
  const tokens = new Map<number, string>()
  let charactersCount = 0

  function forget(handle: number): void {
    charactersCount -= tokens.get(handle)?.length ?? 0
    tokens.delete(handle)
  }

  return {
    define(handle, token) {
      forget(handle)
      const kept = token.length > TOKEN_CHARACTERS_MAX ? '' : token
      tokens.set(handle, kept)
      charactersCount += kept.length
      while (tokens.size > HANDLES_MAX || charactersCount > CHARACTERS_MAX) {
        const [oldest] = tokens.keys()
        if (oldest === undefined) return
        forget(oldest)
      }
    },
    find: (handle) => tokens.get(handle),
  }
}
