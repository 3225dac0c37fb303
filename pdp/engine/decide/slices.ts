/** Long evaluations run in slices, so that others can run in between. */

/** How much an evaluation may do before it pauses. */
export class Slice {
  /** Tuples that may still be visited. */
  left: number

  constructor(left: number) {
    this.left = left
  }
}

/** An evaluation that was not finished within its slice. */
export class Paused<T> {
  /** Continues after the slice was refilled. The view must still show what it showed before. */
  readonly resume: () => Sliced<T>

  constructor(resume: () => Sliced<T>) {
    this.resume = resume
  }
}
export type Sliced<T> = T | Paused<T>

/** Calls `next` with the value: at once, or when the paused evaluation has it. */
export function after<T, R>(found: Sliced<T>, next: (value: T) => Sliced<R>): Sliced<R> {
  return found instanceof Paused ? new Paused(() => after(found.resume(), next)) : next(found)
}

/** Work that can pause: it yields from time to time. */
export type Steps<T> = Generator<undefined, T, undefined>

/** How many items are handled between two yields. */
const ITEMS_PER_STEP = 500

/** Runs a paused evaluation to its end. */
export function* finished<T>(paused: Paused<T>): Steps<T> {
  let found: Sliced<T> = paused
  while (found instanceof Paused) {
    yield
    found = found.resume()
  }
  return found
}

/** Runs the work to its first yield and pauses it there. */
export function begin<T>(steps: Steps<T>): Sliced<T> {
  const { done, value } = steps.next()
  return done === true ? value : new Paused(() => begin(steps))
}

/** Calls `act` for each item until it returns false, and yields now and then. @returns false if it did. */
export function* inSteps<T>(items: Iterable<T>, act: (item: T) => boolean): Steps<boolean> {
  let count = 0
  for (const item of items) {
    if (!act(item)) return false
    if (++count % ITEMS_PER_STEP === 0) yield
  }
  return true
}
