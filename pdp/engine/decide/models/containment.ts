/**
 * Decides whether everybody who has a relation under one model has it under another, whatever the tuples are. A claim "who has all
 * relations on the left has one of those on the right" is split by the rules of the sequent calculus, with relations as propositions:
 * a union on the left, or an intersection on the right, makes a claim for each part, and a subtracted part changes its side. What
 * remains are tuples, each of which leads to a claim about the object that it names. A claim that depends on itself holds, by
 * induction: a subject has a relation by finitely many tuples, and the inner claim is about fewer of them.
 */
import { MEMBERSHIP_RELATIONS } from '../../../shared/domain/membership.ts'
import type { Direct, Expression, Model } from '../model.ts'
import { hasSameAnswers, type TypeRelation } from './same-answers.ts'

/**
 * Tuples that give a subject the smaller relation but not the larger one. They form a tree: each names the subject, or an object with
 * tuples of its own. Conditions count as true. The engine must still confirm the example.
 */
export type Counterexample = { readonly type: string; readonly tuples: readonly ExampleTuple[] }
type ExampleTuple = {
  readonly relation: string
  readonly condition: string | null
  /** `subject`: the subject itself. `everybody`: the wildcard of the subject's type. */
  readonly names: 'subject' | 'everybody' | { readonly object: Counterexample; readonly relation: string | null }
}
/** `proved`; or an example that may show the contrary; or null when neither was found. */
export type Containment = 'proved' | Counterexample | null

/** The most claims that are examined for one question. */
const CLAIMS_MAX = 20_000

/** The model of a formula: `few` has the relation that should be the smaller one, `many` the one to compare with. */
type Side = 'few' | 'many'
type Named = { readonly side: Side; readonly relation: string }
type Formula = Named & {
  readonly expression: Expression
  /** Relations on the same object that were unfolded to get this formula. */
  readonly within: readonly string[]
  /** True when an exclusion moved the formula to the other side of its claim, where the induction above fails. */
  readonly isMoved: boolean
}
type Claim = { readonly type: string; readonly left: Named | null; readonly right: readonly Named[] }
/** A tuple by which a relation may hold. */
type Entry = {
  readonly tuple: string
  readonly condition: string | null
  readonly next: 'subject' | 'everybody' | TypeRelation
  readonly through: 'userset' | 'object'
}
type Branch = { readonly todo: readonly (readonly [isLeft: boolean, Formula])[]; readonly done: readonly string[] }
type Leaf = { readonly left: readonly Formula[]; readonly right: readonly Formula[] }

/**
 * Tells whether everybody with the relation at `place` in `few` has it in `many`, too. @param many null: nobody has the relation there, so
 * that `proved` means that nobody can ever have it in `few`. @param few the model that is compared. @param subject the type of the
 * subjects.
 */
export function contains(many: Model | null, few: Model, place: TypeRelation, subject: string): Containment {
  const models = { few, many: many ?? few }
  if (many !== null && hasSameAnswers(few, many, place)) return 'proved'
  if (models.few.has('group') !== models.many.has('group')) return null
  if (dependsOnItsAbsence(models.few, place) || dependsOnItsAbsence(models.many, place)) return null
  const left: Named = { side: 'few', relation: place.relation }
  const right: readonly Named[] = many === null ? [] : [{ side: 'many', relation: place.relation }]
  return new Prover(models, subject).decide({ type: place.type, left, right })
}

class Prover {
  readonly #models: Readonly<Record<Side, Model>>
  readonly #subject: string
  readonly #proved = new Set<string>()
  /** Claims under way, and whether each was reached through a formula that changed sides. */
  readonly #open: { readonly name: string; readonly isMoved: boolean }[] = []
  #claims = 0
  /** The index of the outermost open claim on which a proof depends. */
  #leansOn = Number.POSITIVE_INFINITY

  constructor(models: Readonly<Record<Side, Model>>, subject: string) {
    this.#models = models
    this.#subject = subject
  }

  decide(claim: Claim, isMoved = false): Containment {
    const { type, left, right } = claim
    const name = `${type} ${left?.side} ${left?.relation} ${right.map((r) => `${r.side} ${r.relation}`).sort()}`
    if (this.#proved.has(name)) return 'proved'
    const at = this.#open.findIndex((open) => open.name === name)
    if (at >= 0) {
      if (isMoved || this.#open.slice(at + 1).some((open) => open.isMoved)) return null
      this.#leansOn = Math.min(this.#leansOn, at)
      return 'proved'
    }
    if (++this.#claims > CLAIMS_MAX) return null
    const outer = this.#leansOn
    this.#leansOn = Number.POSITIVE_INFINITY
    this.#open.push({ name, isMoved })
    const found = this.#branches(type, claim)
    this.#open.pop()
    if (found === 'proved' && this.#leansOn >= this.#open.length) this.#proved.add(name)
    this.#leansOn = Math.min(outer, this.#leansOn < this.#open.length ? this.#leansOn : Number.POSITIVE_INFINITY)
    return found
  }

  #branches(type: string, { left, right }: Claim): Containment {
    const named = (of: Named): Formula => ({
      ...of,
      expression: { kind: 'computed', relation: of.relation },
      within: [],
      isMoved: false,
    })
    const todo = [
      ...(left === null ? [] : [[true, named(left)] as const]),
      ...right.map((of) => [false, named(of)] as const),
    ]
    let found: Containment = 'proved'
    const waiting: (Branch & Leaf)[] = [{ todo, done: [], left: [], right: [] }]
    for (let branch = waiting.pop(); branch !== undefined; branch = waiting.pop()) {
      const [next, ...rest] = branch.todo
      if (next === undefined) {
        const leaf = this.#leaf(type, branch)
        // An example decides the claim; a branch that is not decided may be followed by one with an example.
        if (leaf !== 'proved' && leaf !== null) return leaf
        if (leaf === null) found = null
        continue
      }
      if (++this.#claims > CLAIMS_MAX) return null
      waiting.push(...this.#step(type, next, { ...branch, todo: rest }))
    }
    return found
  }

  /** Replaces a branch by branches of which all must be proved; none: the formula already proves it. */
  #step(
    type: string,
    [isLeft, formula]: readonly [boolean, Formula],
    branch: Branch & Leaf,
  ): readonly (Branch & Leaf)[] {
    const { expression, ...common } = formula
    const part = (of: Expression): readonly [boolean, Formula] => [isLeft, { ...common, expression: of }]
    const moved = (of: Expression): readonly [boolean, Formula] => [
      !isLeft,
      { ...common, expression: of, within: [], isMoved: true },
    ]
    const both = (...more: Branch['todo']): Branch & Leaf => ({ ...branch, todo: [...more, ...branch.todo] })
    switch (expression.kind) {
      case 'union':
      case 'intersection':
        return (expression.kind === 'union') === isLeft
          ? expression.parts.map((of) => both(part(of)))
          : [both(...expression.parts.map(part))]
      case 'exclusion': {
        const [base, subtract] = [part(expression.base), moved(expression.subtract)]
        return isLeft ? [both(base, subtract)] : [both(base), both(subtract)]
      }
      case 'computed':
        return this.#unfolded(type, [isLeft, formula], branch)
      default:
        return [
          isLeft ? { ...branch, left: [...branch.left, formula] } : { ...branch, right: [...branch.right, formula] },
        ]
    }
  }

  #unfolded(
    type: string,
    [isLeft, formula]: readonly [boolean, Formula],
    branch: Branch & Leaf,
  ): readonly (Branch & Leaf)[] {
    const { side, within, expression } = formula
    const relation = expression.kind === 'computed' ? expression.relation : ''
    const known = this.#models[side].get(type)
    if (known === undefined) {
      // The type has no model, so its relation cannot be unfolded.
      return [
        isLeft ? { ...branch, left: [...branch.left, formula] } : { ...branch, right: [...branch.right, formula] },
      ]
    }
    const definition = known.get(relation)
    // A relation that is undefined, or only leads back to itself, holds for no subject.
    if (definition === undefined || (isLeft && within.includes(relation))) return isLeft ? [] : [branch]
    const name = `${isLeft} ${side} ${relation}`
    if (branch.done.includes(name)) return [branch]
    const unfolded: Formula = { ...formula, relation, expression: definition, within: [...within, relation] }
    return [{ ...branch, done: [...branch.done, name], todo: [[isLeft, unfolded], ...branch.todo] }]
  }

  /** Proved if every tuple by which some left part holds also makes a right part hold; else an example with a tuple for each. */
  #leaf(type: string, { left, right }: Leaf): Containment {
    const tuples: ExampleTuple[] = []
    let isOpen = false
    for (const formula of left) {
      const found = this.#anyTuple(type, formula, right)
      if (found === 'proved') return 'proved'
      if (found === null) isOpen = true
      else tuples.push(found)
    }
    return isOpen ? null : { type, tuples }
  }

  /** A tuple by which the left part holds while no right part does. */
  #anyTuple(type: string, formula: Formula, right: readonly Formula[]): 'proved' | ExampleTuple | null {
    const { expression } = formula
    if (expression.kind === 'computed') {
      const same = right.some((r) => r.expression.kind === 'computed' && r.expression.relation === expression.relation)
      return same && this.#isOfNoModel({ type, relation: expression.relation }) ? 'proved' : null
    }
    let isOpen = false
    for (const entry of this.#entries(formula)) {
      const takers = right.flatMap((of) => this.#entries(of).filter((other) => isSameTuple(entry, other)))
      const { tuple: relation, condition, next, through } = entry
      if (typeof next === 'string') {
        if (takers.length === 0) return { relation, condition, names: next }
        continue
      }
      const rights = takers.flatMap(({ next: at, side }) =>
        typeof at === 'string' ? [] : [{ side, relation: at.relation }],
      )
      const claim = { type: next.type, left: { side: formula.side, relation: next.relation }, right: rights }
      const found = this.decide(claim, formula.isMoved)
      if (found === null) isOpen = true
      else if (found !== 'proved')
        return {
          relation,
          condition,
          names: { object: found, relation: through === 'userset' ? next.relation : null },
        }
    }
    return isOpen ? null : 'proved'
  }

  /** The tuples that can make a part hold for subjects of this type. */
  #entries({ expression, relation, side }: Formula): readonly (Entry & { readonly side: Side })[] {
    const isFrom = expression.kind === 'from'
    if (!isFrom && expression.kind !== 'direct') return []
    return subjectsOf(isFrom ? expression.parents : expression.allowed).flatMap(({ subject, condition }) => {
      const [type = '', named] = subject.split('#')
      let next: Entry['next']
      if (isFrom && named === undefined && !type.endsWith(':*')) next = { type, relation: expression.relation }
      else if (!isFrom && named !== undefined) next = { type, relation: named }
      else if (!isFrom && type === this.#subject) next = 'subject'
      else if (!isFrom && type === `${this.#subject}:*`) next = 'everybody'
      else return []
      const tuple = isFrom ? expression.tupleset : relation
      return [{ tuple, condition, side, next, through: isFrom ? 'object' : 'userset' }]
    })
  }

  /**
   * True for relations that models do not define: a group's members, an organization's tiers. In other types without a model, tuples may
   * lead to anything.
   */
  #isOfNoModel({ type, relation }: TypeRelation): boolean {
    if (this.#models.few.has(type) || this.#models.many.has(type)) return false
    return type === 'organization' ? MEMBERSHIP_RELATIONS.has(relation) : type === 'group' && relation === 'member'
  }
}

/** The subjects that tuples may name. A condition includes its definition, which may differ under the same name. */
function subjectsOf({ types, wildcards, usersets, conditional }: Direct) {
  return [
    ...[...types, ...[...wildcards].map((type) => `${type}:*`), ...usersets].map((subject) => ({
      subject,
      condition: null,
    })),
    ...[...(conditional ?? [])].flatMap(([subject, conditions]) =>
      [...conditions].map(([name, definition]) => ({ subject, condition: `${name} ${JSON.stringify(definition)}` })),
    ),
  ]
}

function isSameTuple(one: Entry, other: Entry): boolean {
  if (one.tuple !== other.tuple || one.condition !== other.condition || one.through !== other.through) return false
  if (typeof one.next === 'string' || typeof other.next === 'string') return one.next === other.next
  // A tuple names the relation of a userset, but no relation of an object.
  return one.next.type === other.next.type && (one.through === 'object' || one.next.relation === other.next.relation)
}

/** True if the relation leads back to itself through a subtracted part, so that a question may have no answer. */
function dependsOnItsAbsence(model: Model, place: TypeRelation): boolean {
  const reachedFrom = (start: string): ReadonlySet<string> => {
    const reached = new Set([start])
    for (const at of reached) for (const { to } of edgesAt(model, at)) reached.add(to)
    return reached
  }
  return [...reachedFrom(`${place.type}#${place.relation}`)].some((from) =>
    edgesAt(model, from).some(({ to, isSubtracted }) => isSubtracted && reachedFrom(to).has(from)),
  )
}

function edgesAt(model: Model, name: string): readonly Edge[] {
  const [type = '', relation = ''] = name.split('#')
  const expression = model.get(type)?.get(relation)
  return expression === undefined ? [] : edgesOf(expression, type)
}

type Edge = { readonly to: string; readonly isSubtracted: boolean }
function edgesOf(expression: Expression, type: string, isSubtracted = false): readonly Edge[] {
  switch (expression.kind) {
    case 'direct':
      return subjectsOf(expression.allowed).flatMap(({ subject }) =>
        subject.includes('#') ? [{ to: subject, isSubtracted }] : [],
      )
    case 'union':
    case 'intersection':
      return expression.parts.flatMap((part) => edgesOf(part, type, isSubtracted))
    case 'exclusion':
      return [...edgesOf(expression.base, type, isSubtracted), ...edgesOf(expression.subtract, type, true)]
    case 'computed':
      return [{ to: `${type}#${expression.relation}`, isSubtracted }]
    case 'from':
      return subjectsOf(expression.parents).map(({ subject }) => ({
        to: `${subject}#${expression.relation}`,
        isSubtracted,
      }))
  }
}
