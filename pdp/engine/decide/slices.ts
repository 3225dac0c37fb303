/** Long evaluations are done in slices, so that others get their turn in between. */

/** How much may be done before others get their turn. */
export class Slice {
  /** Tuples that may still be visited. */
  left: number

  constructor(left: number) {
    this.left = left
  }
}

/** An evaluation that was not finished within its slice. */
export class Paused<T> {
  /** Goes on over the same view, which has to show what it showed before, once the slice has been given more. */
  readonly resume: () => Sliced<T>

  constructor(resume: () => Sliced<T>) {
    this.resume = resume
  }
}
export type Sliced<T> = T | Paused<T>

/** `next` is called once there is a value. */
export function after<T, R>(found: Sliced<T>, next: (value: T) => Sliced<R>): Sliced<R> {
  return found instanceof Paused ? new Paused(() => after(found.resume(), next)) : next(found)
}

/** Work that stops now and then. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Items that are gone through between two stops. */
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

/** To its first stop, where it is paused. */
export function begin<T>(steps: Steps<T>): Sliced<T> {
  const { done, value } = steps.next()
  return done === true ? value : new Paused(() => begin(steps))
}

/** The items, with a stop now and then. */
export function* inSteps<T>(items: Iterable<T>, act: (item: T) => boolean): Steps<boolean> {
  let count = 0
  for (const item of items) {
    if (!act(item)) return false
    if (++count % ITEMS_PER_STEP === 0) yield
  }
  return true
}
