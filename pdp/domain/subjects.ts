/** Building subjects. */
import type { Subject } from './decision.ts'

/** A user. */
export const user = (id: string): Subject => ({ type: 'user', id })
/** An OAuth client acting for itself. */
export const service = (id: string): Subject => ({ type: 'service', id })
