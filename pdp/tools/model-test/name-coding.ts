/**
 * Codes for the names of a store file in the engine's own grammar, one code for each name. OpenFGA allows capitals, other scripts and
 * long ids, and its types `organization` or `group` must not get the meaning that these words have here.
 */
import type { Direct, Expression, Model } from '../../engine/decide/model.ts'
import { directOf } from '../../engine/decide/restrictions.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import type { FileTuple } from './tuple-file.ts'

/**
 * Relations that are made for each relation. `-direct`: its tuples alone. `-named`: subjects that hold it by name, not only by a
 * wildcard. `-spared`: subjects that an exclusion within the relation names, so that they do not hold it.
 */
const ASPECTS = { plain: '', direct: '-direct', named: '-named', spared: '-spared' } as const
type Aspect = keyof typeof ASPECTS
type Conditions = NonNullable<Direct['conditional']> extends ReadonlyMap<string, infer C> ? C : never

export class Coding {
  readonly #codes = new Map<string, string>()

  #code(prefix: 't' | 'r' | 'i', name: string): string {
    const key = `${prefix} ${name}`
    const known = this.#codes.get(key)
    if (known !== undefined) return known
    const code = `${prefix}${this.#codes.size}`
    this.#codes.set(key, code)
    return code
  }

  /** The engine's text with the store file's names instead of codes. No other word of the engine looks like a code. */
  decoded(message: string): string {
    const names = new Map([...this.#codes].map(([key, code]) => [code, key.slice('t '.length)]))
    return message.replace(
      /(?<![\w-])([tri]\d+)(?:-direct|-named|-spared)?(?![\w-])/g,
      (whole, code) => names.get(code) ?? whole,
    )
  }

  type(name: string): string {
    return this.#code('t', name)
  }

  relation(name: string, aspect: Aspect = 'plain'): string {
    return this.#code('r', name) + ASPECTS[aspect]
  }

  /** The coded form of `type:id` or `type:*`. */
  object(name: string): string {
    const colon = name.indexOf(':')
    const id = name.slice(colon + 1)
    return `${this.type(name.slice(0, colon))}:${id === '*' ? '*' : this.#code('i', id)}`
  }

  /** The coded form of a subject: as `object`, or `type:id#relation`. */
  subject(name: string, aspect: Aspect = 'plain'): string {
    const hash = name.indexOf('#')
    return hash < 0
      ? this.object(name)
      : `${this.object(name.slice(0, hash))}#${this.relation(name.slice(hash + 1), aspect)}`
  }

  /** The tuple itself, and its tuple for each aspect. */
  tuples(tuple: FileTuple): readonly Tuple[] {
    const { user, relation, condition } = tuple
    const object = this.object(tuple.object)
    const of = (aspect: Aspect, inner: Aspect): Tuple => ({
      object,
      relation: this.relation(relation, aspect),
      subject: this.subject(user, inner),
      expiresAtMs: null,
      ...(condition === null ? {} : { condition }),
    })
    const all = [of('plain', 'plain'), of('direct', 'plain')]
    if (!user.endsWith(':*')) all.push(of('named', 'named'))
    if (user.includes('#')) all.push(of('spared', 'spared'))
    return all
  }

  /** The model, with each relation in all of its aspects. */
  model(model: Model): Model {
    return new Map(
      [...model].map(([type, relations]) => {
        const coded = [...relations].flatMap(([relation, expression]) => this.#aspects(relation, expression))
        return [this.type(type), new Map(coded)] as const
      }),
    )
  }

  #aspects(relation: string, expression: Expression): readonly (readonly [string, Expression])[] {
    const direct = directOf(expression)
    const aspects: [Aspect, Expression][] = [
      ['plain', this.#plain(expression, null)],
      ['named', this.#named(expression, relation)],
      ['spared', this.#spared(expression, relation)],
    ]
    if (direct !== null) aspects.push(['direct', this.#plain({ kind: 'direct', allowed: direct }, null)])
    return aspects.map(([aspect, coded]) => [this.relation(relation, aspect), coded] as const)
  }

  /** `inside`: the relation to which the expression's tuples belong, if the expression is part of another aspect; null: its own. */
  #plain(expression: Expression, inside: string | null): Expression {
    switch (expression.kind) {
      case 'direct':
        return inside === null
          ? { kind: 'direct', allowed: this.#allowed(expression.allowed, 'plain') }
          : { kind: 'computed', relation: this.relation(inside, 'direct') }
      case 'exclusion':
        return {
          kind: 'exclusion',
          base: this.#plain(expression.base, inside),
          subtract: this.#plain(expression.subtract, inside),
        }
      case 'computed':
      case 'from':
        return this.#elsewhere(expression, 'plain')
      default:
        return { kind: expression.kind, parts: expression.parts.map((part) => this.#plain(part, inside)) }
    }
  }

  #named(expression: Expression, relation: string): Expression {
    const named = (part: Expression): Expression => this.#named(part, relation)
    const plain = (part: Expression): Expression => this.#plain(part, relation)
    switch (expression.kind) {
      case 'direct':
        return { kind: 'direct', allowed: this.#allowed(expression.allowed, 'named') }
      case 'computed':
      case 'from':
        return this.#elsewhere(expression, 'named')
      case 'union':
        return { kind: 'union', parts: expression.parts.map(named) }
      case 'intersection':
        return anyNamed(expression.parts, named, plain)
      case 'exclusion': {
        const { base, subtract } = expression
        const spared: Expression = { kind: 'intersection', parts: [plain(base), this.#spared(subtract, relation)] }
        return { kind: 'exclusion', base: { kind: 'union', parts: [named(base), spared] }, subtract: plain(subtract) }
      }
    }
  }

  #spared(expression: Expression, relation: string): Expression {
    switch (expression.kind) {
      case 'direct':
        return { kind: 'direct', allowed: this.#allowed(expression.allowed, 'spared') }
      case 'computed':
      case 'from':
        return this.#elsewhere(expression, 'spared')
      case 'exclusion':
        return anyNamed(
          [expression.base, expression.subtract],
          (part) => this.#named(part, relation),
          (part) => this.#plain(part, relation),
        )
      default:
        return { kind: 'union', parts: [] }
    }
  }

  #elsewhere(expression: Extract<Expression, { kind: 'computed' | 'from' }>, aspect: Aspect): Expression {
    const relation = this.relation(expression.relation, aspect)
    if (expression.kind === 'computed') return { kind: 'computed', relation }
    const parents = this.#allowed(expression.parents, 'plain')
    return { kind: 'from', tupleset: this.relation(expression.tupleset), relation, parents }
  }

  #conditional(subject: string, conditions: Conditions, aspect: Aspect): readonly (readonly [string, Conditions])[] {
    const hash = subject.indexOf('#')
    if (hash >= 0) {
      const relation = this.relation(subject.slice(hash + 1), aspect)
      return [[`${this.type(subject.slice(0, hash))}#${relation}`, conditions]]
    }
    if (subject.endsWith(':*')) return aspect === 'plain' ? [[this.object(subject), conditions]] : []
    return aspect === 'spared' ? [] : [[this.type(subject), conditions]]
  }

  /** The allowed subjects of an aspect. For `named`, wildcards are left out, since they name no one. */
  #allowed({ types, wildcards, usersets, conditional }: Direct, aspect: Aspect): Direct {
    return {
      conditional:
        conditional === null
          ? null
          : new Map(
              [...conditional].flatMap(([subject, conditions]) => this.#conditional(subject, conditions, aspect)),
            ),
      types: new Set(aspect === 'spared' ? [] : [...types].map((type) => this.type(type))),
      wildcards: new Set(aspect === 'plain' ? [...wildcards].map((type) => this.type(type)) : []),
      usersets: new Set(
        [...usersets].map((userset) => {
          const hash = userset.indexOf('#')
          return `${this.type(userset.slice(0, hash))}#${this.relation(userset.slice(hash + 1), aspect)}`
        }),
      ),
    }
  }
}

/** True if all parts hold, and one of them by name. */
function anyNamed(
  parts: readonly Expression[],
  named: (part: Expression) => Expression,
  plain: (part: Expression) => Expression,
): Expression {
  const ways = parts.map((_, i) => parts.map((part, j) => (i === j ? named(part) : plain(part))))
  return { kind: 'union', parts: ways.map((way) => ({ kind: 'intersection', parts: way })) }
}
