/** A view in which the token's subject is also a member of the groups that the token names. */

import type { TokenMemberships } from '../../../shared/domain/decision.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import type { Userset } from '../usersets.ts'
import { type Closure, FALSE, GROUPS_MAX, TRUE, type Truth, UNKNOWN, type View } from '../view.ts'

/** Adds the groups of a token to one subject. They enter no cache: closures for other questions come from the stored view. */
export class TokenMembershipView implements View {
  readonly #stored: View
  readonly #subject: string
  /** The token's groups as usersets, such as `group:x#member`. */
  readonly #groups: ReadonlySet<string>
  readonly #logs: ReadonlySet<JournalId>

  constructor(stored: View, subject: string, { groups, organizations }: TokenMemberships) {
    this.#stored = stored
    this.#subject = subject
    this.#groups = new Set(groups.map((id) => `group:${id}#member`))
    this.#logs = new Set(organizations)
  }

  #holds(log: JournalId, subject: string): boolean {
    return subject === this.#subject && this.#logs.has(log)
  }

  has(log: JournalId, object: string, relation: string, subject: string): Truth {
    if (this.#holds(log, subject) && relation === 'member' && this.#groups.has(`${object}#member`)) return TRUE
    return this.#stored.has(log, object, relation, subject)
  }

  usersets: View['usersets'] = (...place) => this.#stored.usersets(...place)

  namedBy: View['namedBy'] = (log, name, where) => {
    const stored = this.#stored.namedBy(log, name, where)
    const isAbout = where === null || (where.type === 'group' && where.relation === 'member')
    if (stored === undefined || stored === null || !isAbout || !this.#holds(log, name)) return stored
    return [...new Set([...stored, ...this.#groups])]
  }

  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined {
    return this.#stored.objects(log, object, relation, countMax)
  }

  conditionOf: View['conditionOf'] = (...place) => this.#stored.conditionOf(...place)
  conditional: View['conditional'] = (...place) => this.#stored.conditional(...place)
  clockMs: View['clockMs'] = () => this.#stored.clockMs()
  noteUntil: View['noteUntil'] = (instantMs) => this.#stored.noteUntil(instantMs)

  groups(log: JournalId, subject: string): readonly string[] | undefined {
    const stored = this.#stored.groups(log, subject)
    return stored === undefined || !this.#holds(log, subject) ? stored : [...new Set([...stored, ...this.#groups])]
  }

  inGroup(log: JournalId, subject: string, group: Userset): Truth | null {
    const stored = this.#stored.inGroup(log, subject, group)
    if (stored === TRUE || !this.#holds(log, subject)) return stored
    if (this.#groups.has(group.text)) return TRUE
    let truth = stored
    for (const own of this.#groups) {
      const above = this.#stored.inGroup(log, own, group)
      if (above === TRUE) return TRUE
      // UNKNOWN wins over null (too many groups), because missing rows may still give the answer.
      if (above === UNKNOWN || (above === null && truth === FALSE)) truth = above
    }
    return truth
  }

  closure(log: JournalId, subject: string): Closure | undefined {
    const stored = this.#stored.closure(log, subject)
    if (!this.#holds(log, subject)) return stored
    const groups = new Set([...(stored?.groups ?? []), ...this.#groups])
    let { truncated } = stored ?? { truncated: false }
    let missing = stored === undefined
    for (const own of this.#groups) {
      const above = this.#stored.closure(log, own)
      if (above === undefined) missing = true
      else for (const group of above.groups) groups.add(group)
      truncated ||= above?.truncated === true
    }
    return missing ? undefined : { groups, truncated: truncated || groups.size > GROUPS_MAX }
  }

  membership(log: JournalId, subject: string): ReturnType<View['membership']> {
    return this.#stored.membership(log, subject)
  }

  grants(log: JournalId, subject: string): ReturnType<View['grants']> {
    return this.#stored.grants(log, subject)
  }

  organization(id: string): ReturnType<View['organization']> {
    return this.#stored.organization(id)
  }

  manifests(): ReturnType<View['manifests']> {
    return this.#stored.manifests()
  }

  roles(): ReturnType<View['roles']> {
    return this.#stored.roles()
  }

  revocations(): ReturnType<View['revocations']> {
    return this.#stored.revocations()
  }
}
