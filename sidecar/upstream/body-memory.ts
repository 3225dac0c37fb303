/** Frees the buffers of streamed bodies early, so that a long body takes no more memory than a short one. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A collection after so many bytes: more frequent ones take time from other requests, and save little memory. */
const COLLECTION_BYTES = 4 * 1024 * 1024

/**
 * Each piece of a body is a buffer outside of V8's heap. V8 sees only its small object, so it would collect garbage only after tens of
 * megabytes of such buffers.
 */
export class BodyMemory {
  readonly #collect: () => void
  #bytes = 0

  /** `collect` frees young objects. */
  constructor(collect: () => void = collectYoung()) {
    this.#collect = collect
  }

  /** Must be called for each piece. */
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
