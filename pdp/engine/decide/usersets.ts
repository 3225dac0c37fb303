/** Usersets (`type:id#relation`) and wildcards (`type:*`) as tuples name them, parsed once. */
import { isWildcard, typeOf } from '../../shared/domain/names.ts'

export const isUserset = (subject: string): boolean => subject.includes('#') || isWildcard(subject)

/** As models name it: `group#member` for a userset, `user` for `user:*` and `user:a`. */
export function subjectType(subject: string): string {
  const hash = subject.indexOf('#')
  return hash < 0 ? typeOf(subject) : `${typeOf(subject)}${subject.slice(hash)}`
}

export class Userset {
  readonly text: string
  /** Given by the index that made it, which finds it again by this number; 0: no index did. */
  readonly number: number
  /** `group:x#member`, which is followed from the subject's side unless a model says what a group is. */
  readonly isGroup: boolean
  readonly #hash: number
  /** Taken out of the text once they are needed: a text that was looked up before is found faster. */
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
