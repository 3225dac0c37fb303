/**
 * Gives each name in use an integer: even for plain objects, odd for usersets and wildcards. The integer of a name that is
 * no longer in use goes to a later name.
 */
import { isUserset, Userset } from '../../decide/usersets.ts'

export const isUsersetNumber = (number: number): boolean => (number & 1) === 1
/** The row of a number in a Column. Plain objects and usersets have separate rows, each from 0 on. */
export const rowOf = (number: number): number => number >> 1

/** Items by row, with a count of their uses. The row of an item that is no longer used goes to a later item. */
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

  /** @returns true when that was the last use: the item is removed, and its row is free. */
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

  /** The userset of a number. Throws TypeError when no userset has this number. */
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
