/** A map from row numbers to sets of integers, in a typed array: most rows hold one integer and take four bytes. */

const NONE = -1
/** The longest list: up to this length a list is searched faster than a Set, and is a fraction of its size. */
const LIST_MAX = 16
export type Many = readonly number[] | ReadonlySet<number>

export function holds(many: Many, value: number): boolean {
  if (!Array.isArray(many)) return (many as ReadonlySet<number>).has(value)
  for (let at = 0; at < many.length; at++) if (many[at] === value) return true
  return false
}

export const sizeOf = (many: Many): number => (many instanceof Set ? many.size : (many as readonly number[]).length)

export const valuesOf = (held: number | Many): readonly number[] => (typeof held === 'number' ? [held] : [...held])

/** The same values in as little memory as their number allows. */
export const packed = (values: Set<number>): Many => (values.size > LIST_MAX ? values : [...values])

export class Column {
  /** The cell of each row: NONE, its only value (0 or more), or -2 - n if `#many[n]` has its values. */
  #cells = new Int32Array(64).fill(NONE)
  readonly #many: (number[] | Set<number>)[] = []
  readonly #free: number[] = []

  /** The row's values; null: none. */
  get(row: number): number | Many | null {
    const cell = row < this.#cells.length ? (this.#cells[row] ?? NONE) : NONE
    if (cell === NONE) return null
    return cell >= 0 ? cell : (this.#many[-2 - cell] ?? null)
  }

  has(row: number, value: number): boolean {
    const held = this.get(row)
    return typeof held === 'number' ? held === value : held !== null && holds(held, value)
  }

  /** Adds a value. @returns false if the row had it already. */
  add(row: number, value: number): boolean {
    if (this.has(row, value)) return false
    if (row >= this.#cells.length) this.#grow(row)
    const cell = this.#cells[row] ?? NONE
    if (cell === NONE) this.#cells[row] = value
    else if (cell >= 0) this.#cells[row] = -2 - this.#keep([cell, value])
    else this.#insert(-2 - cell, value)
    return true
  }

  #insert(index: number, value: number): void {
    const many = this.#many[index]
    if (many instanceof Set) many.add(value)
    else if (many !== undefined && many.length < LIST_MAX) many.push(value)
    else this.#many[index] = new Set(many).add(value)
  }

  #keep(many: number[]): number {
    const index = this.#free.pop() ?? this.#many.length
    this.#many[index] = many
    return index
  }

  delete(row: number, value: number): void {
    const cell = row < this.#cells.length ? (this.#cells[row] ?? NONE) : NONE
    if (cell === value) this.#cells[row] = NONE
    if (cell >= NONE) return
    const index = -2 - cell
    const many = this.#many[index] ?? []
    if (many instanceof Set) many.delete(value)
    else if (many.includes(value)) many.splice(many.indexOf(value), 1)
    const [only = NONE, second] = many
    if (second !== undefined) return
    this.#many[index] = []
    this.#free.push(index)
    this.#cells[row] = only
  }

  *rows(): Iterable<number> {
    for (let row = 0; row < this.#cells.length; row++) if (this.#cells[row] !== NONE) yield row
  }

  #grow(row: number): void {
    const cells = new Int32Array(Math.max(row + 1, Math.ceil(this.#cells.length * 1.5))).fill(NONE)
    cells.set(this.#cells)
    this.#cells = cells
  }
}
