/** What an unknown error says, on one line of a log or a message. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
