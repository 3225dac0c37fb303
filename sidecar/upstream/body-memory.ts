/** Frees the buffers of streamed bodies early, so that a long body takes no more memory than a short one. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** More frequent collections take time from other requests, and save little memory. */
const COLLECTION_BYTES = 4 * 1024 * 1024

/**
 * Each piece of a body is a buffer outside of V8's heap. V8 sees only its small object, and so collects no garbage before tens
 * of megabytes of such buffers have passed.
 */
export class BodyMemory {
  readonly #collect: () => void
  #bytes = 0

  /** `collect` frees what lived shortly. */
  constructor(collect: () => void = collectYoung()) {
    this.#collect = collect
  }

  /** To be called for each piece. */
  passed(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes < COLLECTION_BYTES) return
    this.#bytes = 0
    this.#collect()
  }
}

/** Most sidecars see no large body, so the collector is looked up at the first one. */
function collectYoung(): () => void {
  let collect: NodeJS.GCFunction | null = null
  return () => {
    collect ??= exposedCollector()
    collect({ type: 'minor' })
  }
}

/** V8 shows its collector only to contexts that are made after the flag was set. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
