/** The instants at which tuples of one organization expire. Few tuples do, so the others take no memory here. */
import type { TupleKey } from '../../../shared/domain/tuple.ts'

export class Expiries {
  /** How many expiring tuples make a subject a member of a group. */
  membersCount = 0
  readonly #instants = new Map<string, number>()

  get count(): number {
    return this.#instants.size
  }

  /** The tuple's expiry; null: never. */
  of(tuple: TupleKey): number | null {
    return this.#instants.size === 0 ? null : (this.#instants.get(nameOf(tuple)) ?? null)
  }

  set(tuple: TupleKey, expiresAtMs: number | null): void {
    if (expiresAtMs === null && this.#instants.size === 0) return
    const before = this.#instants.size
    if (expiresAtMs === null) this.#instants.delete(nameOf(tuple))
    else this.#instants.set(nameOf(tuple), expiresAtMs)
    if (isGroup(tuple.object, tuple.relation)) this.membersCount += this.#instants.size - before
  }
}

/** True if a tuple of the relation puts its subject into a group. */
export const isGroup = (object: string, relation: string): boolean =>
  relation === 'member' && object.startsWith('group:')

/** A key for the tuple, unique because no name holds a space. */
const nameOf = ({ object, relation, subject }: TupleKey): string => `${relation} ${object} ${subject}`
