/** A journal's role grants by id and by subject, so that a check reads only its subject's grants. */
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

  /** The grants to this very subject, without those of its groups. */
  to(subject: string): readonly RoleGrant[] {
    return this.#bySubject.get(subject) ?? NONE
  }

  /** The subjects with grants, each once. */
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
