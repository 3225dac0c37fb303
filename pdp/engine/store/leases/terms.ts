/** How long one renewal lets a process answer from memory, and how long a writer waits for a process that does not answer. */

export const TERM_MS = 2_000
/** The clock of a process, which goes on while the process is stopped, may run so much faster or slower than true time. */
const DRIFT = 0.01

/** A time that any clock counts as `ms` is counted as no more than this by any other. */
export const atMost = (ms: number): number => (ms * (1 + DRIFT)) / (1 - DRIFT)
/** And as no less than this. */
export const atLeast = (ms: number): number => (ms * (1 - DRIFT)) / (1 + DRIFT)
