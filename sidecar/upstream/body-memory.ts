/** Frees the buffers of streamed bodies early, so that memory does not grow with the length of a body. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A collection after so many bytes: more frequent ones take time from other requests, and save little memory. */
const COLLECTION_BYTES = 4 * 1024 * 1024

/**
 * Counts the buffers that hold pieces of bodies. V8 sees only their small objects, not their bytes outside its heap, and so would collect
 * them only after tens of megabytes.
 */
export class BodyMemory {
  readonly #collect: () => void
  #bytes = 0

  /** `collect` runs V8's collection of young objects. */
  constructor(collect: () => void = collectYoung()) {
    this.#collect = collect
  }

  /** Counts a piece. Must be called for each. */
  passed(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes < COLLECTION_BYTES) return
    this.#bytes = 0
    this.#collect()
  }
}

/** The collector is looked up at first use, since most sidecars see no large body. */
function collectYoung(): () => void {
  let collect: NodeJS.GCFunction | null = null
  return () => {
    collect ??= exposedCollector()
    collect({ type: 'minor' })
  }
}

/** V8 gives its collector only to contexts that are made after this flag is set. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
