/** The lives of tokens, sessions and public answers. */

/** How long others may cache our key set and metadata; a new key is published for longer before it signs. */
export const PUBLIC_CACHE_SECONDS = 300

export const DAY_SECONDS = 86_400
/** Short, because roles and permissions in a token are as old as the token (ARCHITECTURE.md section 6). */
export const ACCESS_TOKEN_SECONDS = 900
export const SESSION_SECONDS = DAY_SECONDS / 2
