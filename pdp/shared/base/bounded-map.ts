/** A map with a bound on its entries: when it is full, a new entry replaces the one that was set first. */
export class BoundedMap<Key, Value> {
  readonly #countMax: number
  readonly #values = new Map<Key, Value>()

  constructor(countMax: number) {
    this.#countMax = countMax
  }

  get size(): number {
    return this.#values.size
  }

  get(key: Key): Value | undefined {
    return this.#values.get(key)
  }

  /** Sets a value. The key becomes the newest, also if it was known. */
  set(key: Key, value: Value): void {
    this.#values.delete(key)
    if (this.#values.size >= this.#countMax) this.takeOldest()
    this.#values.set(key, value)
  }

  getOrMake(key: Key, make: () => Value): Value {
    const known = this.#values.get(key)
    if (known !== undefined) return known
    const made = make()
    this.set(key, made)
    return made
  }

  delete(key: Key): void {
    this.#values.delete(key)
  }

  /** Removes the entry that was set first; undefined when it is empty. */
  takeOldest(): Value | undefined {
    const [oldest] = this.#values
    if (oldest === undefined) return undefined
    this.#values.delete(oldest[0])
    return oldest[1]
  }
}
