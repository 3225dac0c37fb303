/**
 * Names that are in use, as integers: even for plain objects, odd for usersets and wildcards, so that a number says which
 * it is. A number is used again when its name is gone.
 */
import { isUserset, Userset } from '../../decide/usersets.ts'

export const isUsersetNumber = (number: number): boolean => (number & 1) === 1
/** The place of a number among those of its kind: what columns have rows for. */
export const rowOf = (number: number): number => number >> 1

/** Things that are counted as long as they are used, in places that are filled again. */
class Rows<T> {
  readonly items: (T | undefined)[] = []
  #uses = new Int32Array(64)
  readonly #free: number[] = []

  add(make: (place: number) => T): number {
    const place = this.#free.pop() ?? this.items.length
    this.items[place] = make(place)
    if (place >= this.#uses.length) {
      const uses = new Int32Array(Math.ceil(this.#uses.length * 1.5) + 1)
      uses.set(this.#uses)
      this.#uses = uses
    }
    return place
  }

  use(place: number): void {
    this.#uses[place] = (this.#uses[place] ?? 0) + 1
  }

  /** @returns true when that was the last use; the place is then free. */
  release(place: number): boolean {
    const left = (this.#uses[place] ?? 0) - 1
    this.#uses[place] = left
    if (left > 0) return false
    this.items[place] = undefined
    this.#free.push(place)
    return true
  }
}

export class NumberedNames {
  readonly #numbers = new Map<string, number>()
  readonly #objects = new Rows<string>()
  readonly #usersets = new Rows<Userset>()

  find(text: string): number | undefined {
    return this.#numbers.get(text)
  }

  text(number: number): string {
    return isUsersetNumber(number) ? this.userset(number).text : this.object(rowOf(number))
  }

  object(row: number): string {
    return this.#objects.items[row] ?? ''
  }

  /** Throws TypeError for a number that is not a userset's. */
  userset(number: number): Userset {
    const userset = this.#usersets.items[rowOf(number)]
    if (userset === undefined) throw new TypeError(`${number} is not the number of a userset`)
    return userset
  }

  use(text: string): number {
    let number = this.#numbers.get(text)
    if (number === undefined) {
      number = isUserset(text)
        ? 2 * this.#usersets.add((place) => new Userset(text, 2 * place + 1)) + 1
        : 2 * this.#objects.add(() => text)
      this.#numbers.set(text, number)
    }
    this.#places(number).use(rowOf(number))
    return number
  }

  release(number: number): void {
    const text = this.text(number)
    if (this.#places(number).release(rowOf(number))) this.#numbers.delete(text)
  }

  #places(number: number): Rows<string> | Rows<Userset> {
    return isUsersetNumber(number) ? this.#usersets : this.#objects
  }
}
