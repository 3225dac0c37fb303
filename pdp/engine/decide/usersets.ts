/** Usersets (`type:id#relation`) and wildcards (`type:*`) of tuples, parsed only once. */
import { isWildcard, typeOf } from '../../shared/domain/names.ts'

export const isUserset = (subject: string): boolean => subject.includes('#') || isWildcard(subject)

/** The subject's type in a model's form: `group#member` for a userset, `user` for `user:*` and `user:a`. */
export function subjectType(subject: string): string {
  const hash = subject.indexOf('#')
  return hash < 0 ? typeOf(subject) : `${typeOf(subject)}${subject.slice(hash)}`
}

export class Userset {
  readonly text: string
  /** The number that NumberedNames gave it; 0: it comes from elsewhere. */
  readonly number: number
  /** True for `group:x#member`, which is answered by the subject's groups unless a model defines groups. */
  readonly isGroup: boolean
  readonly #hash: number
  /** The parts of the text, cut out when first needed; the same string is found faster in a Map the second time. */
  #object: string | null = null
  #relation: string | null = null
  #type: string | null = null

  constructor(text: string, number = 0) {
    this.text = text
    this.number = number
    this.isGroup = text.startsWith('group:') && text.endsWith('#member')
    this.#hash = text.indexOf('#')
  }

  get isWildcard(): boolean {
    return this.#hash < 0
  }

  get object(): string {
    this.#object ??= this.text.slice(0, this.#hash)
    return this.#object
  }

  get relation(): string {
    this.#relation ??= this.text.slice(this.#hash + 1)
    return this.#relation
  }

  get type(): string {
    this.#type ??= subjectType(this.text)
    return this.#type
  }
}
