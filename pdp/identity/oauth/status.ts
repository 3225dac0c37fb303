/** The status numbers of our own identity pages and routes. oidc-provider sets those of its OAuth answers. */
export const STATUS = {
  shown: 200,
  empty: 204,
  seeOther: 303,
  unmodified: 304,
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  missing: 404,
  methodUnsupported: 405,
  tooLarge: 413,
  tooMany: 429,
  oversized: 431,
  failed: 500,
  unavailable: 503,
} as const
export type StatusName = keyof typeof STATUS
