/** A view without some of the stored tuples, for one question. Only relations are read from it, as with contextual tuples. */

import type { ContextualTuple } from '../../../shared/domain/decision.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import type { Userset } from '../usersets.ts'
import { type Closure, FALSE, GROUPS_MAX, type Truth, truthIn, type View } from '../view.ts'

const setName = (object: string, relation: string): string => `${object}#${relation}`

/** `log`: the question's journal; the tuples are removed from no other. */
export function viewWithout(stored: View, log: JournalId, tuples: readonly ContextualTuple[]): View {
  return tuples.length === 0 ? stored : new ViewWithout(stored, log, tuples)
}

class ViewWithout implements View {
  readonly #stored: View
  readonly #log: JournalId
  /** The removed subjects, by `object#relation`. */
  readonly #removed = new Map<string, Set<string>>()
  #hasGroups = false

  constructor(stored: View, log: JournalId, tuples: readonly ContextualTuple[]) {
    this.#stored = stored
    this.#log = log
    for (const { object, relation, subject } of tuples) {
      const set = setName(object, relation)
      this.#removed.set(set, (this.#removed.get(set) ?? new Set()).add(subject))
      this.#hasGroups ||= relation === 'member' && object.startsWith('group:')
    }
  }

  #lacks(log: JournalId, set: string, subject: string): boolean {
    return log === this.#log && this.#removed.get(set)?.has(subject) === true
  }

  has(log: JournalId, object: string, relation: string, subject: string): Truth {
    if (this.#lacks(log, setName(object, relation), subject)) return FALSE
    return this.#stored.has(log, object, relation, subject)
  }

  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null | undefined {
    const set = setName(object, relation)
    const stored = this.#stored.usersets(log, object, relation, countMax)
    return stored == null ? stored : stored.filter(({ text }) => !this.#lacks(log, set, text))
  }

  namedBy: View['namedBy'] = (log, name, where) => {
    const stored = this.#stored.namedBy(log, name, where)
    return stored == null ? stored : stored.filter((set) => !this.#lacks(log, set, name))
  }

  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined {
    const set = setName(object, relation)
    const stored = this.#stored.objects(log, object, relation, countMax)
    return stored == null ? stored : stored.filter((name) => !this.#lacks(log, set, name))
  }

  conditionOf: View['conditionOf'] = (log, object, relation, subject) =>
    this.#lacks(log, setName(object, relation), subject)
      ? null
      : this.#stored.conditionOf(log, object, relation, subject)

  conditional: View['conditional'] = (log, object, relation, wanted) => {
    const set = setName(object, relation)
    const stored = this.#stored.conditional(log, object, relation, wanted)
    return stored == null ? stored : stored.filter(({ subject }) => !this.#lacks(log, set, subject))
  }

  groups(log: JournalId, subject: string): readonly string[] | undefined {
    return this.#stored.groups(log, subject)?.filter((group) => !this.#lacks(log, group, subject))
  }

  inGroup(log: JournalId, subject: string, group: Userset): Truth | null {
    if (!this.#hasGroups || log !== this.#log) return this.#stored.inGroup(log, subject, group)
    return truthIn(this.closure(log, subject), group)
  }

  closure(log: JournalId, subject: string): Closure | undefined {
    if (!this.#hasGroups || log !== this.#log) return this.#stored.closure(log, subject)
    const groups = new Set<string>()
    const direct = this.groups(log, subject)
    let missing = direct === undefined
    for (const group of direct ?? []) groups.add(group)
    // This loop also visits members that are added meanwhile, until no new one comes.
    for (const at of groups) {
      if (groups.size > GROUPS_MAX) return { groups, truncated: true }
      const above = this.groups(log, at)
      missing ||= above === undefined
      for (const group of above ?? []) groups.add(group)
    }
    return missing ? undefined : { groups, truncated: false }
  }

  clockMs: View['clockMs'] = () => this.#stored.clockMs()
  noteUntil: View['noteUntil'] = (instantMs) => this.#stored.noteUntil(instantMs)
  membership: View['membership'] = (log, subject) => this.#stored.membership(log, subject)
  grants: View['grants'] = (log, subject) => this.#stored.grants(log, subject)
  organization: View['organization'] = (id) => this.#stored.organization(id)
  manifests: View['manifests'] = () => this.#stored.manifests()
  roles: View['roles'] = () => this.#stored.roles()
  revocations: View['revocations'] = () => this.#stored.revocations()
}
