/** The text of an unknown error, on one line of a log or a message. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
