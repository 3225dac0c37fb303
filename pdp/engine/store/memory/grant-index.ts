/** Role grants of one journal, by id and by subject, so that a check reads only the grants of its subject. */
import type { RoleGrant } from '../../../shared/domain/role.ts'

const NONE: readonly RoleGrant[] = []

export class GrantIndex {
  readonly #byId = new Map<string, RoleGrant>()
  readonly #bySubject = new Map<string, readonly RoleGrant[]>()

  constructor(grants: Iterable<RoleGrant> = []) {
    for (const grant of grants) this.set(grant.id, grant)
  }

  get(id: string): RoleGrant | undefined {
    return this.#byId.get(id)
  }

  /** Grants to exactly this subject. */
  to(subject: string): readonly RoleGrant[] {
    return this.#bySubject.get(subject) ?? NONE
  }

  /** Every subject that has a grant, once. */
  subjects(): Iterable<string> {
    return this.#bySubject.keys()
  }

  values(): Iterable<RoleGrant> {
    return this.#byId.values()
  }

  set(id: string, grant: RoleGrant): void {
    this.delete(id)
    this.#byId.set(id, grant)
    this.#bySubject.set(grant.subject, [...this.to(grant.subject), grant])
  }

  delete(id: string): void {
    const grant = this.#byId.get(id)
    if (grant === undefined) return
    this.#byId.delete(id)
    const others = this.to(grant.subject).filter((other) => other !== grant)
    if (others.length > 0) this.#bySubject.set(grant.subject, others)
    else this.#bySubject.delete(grant.subject)
  }
}
