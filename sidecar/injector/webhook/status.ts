/** The status numbers of the injector's webhook. */
export const STATUS = {
  ok: 200,
  bodyInvalid: 400,
  pathUnknown: 404,
  methodUnsupported: 405,
  bodyLate: 408,
  bodyTooLarge: 413,
  failed: 500,
  overloaded: 503,
} as const
/** The status that the client of a refused Pod gets from the API server. */
export const STATUS_DENIED = 403
