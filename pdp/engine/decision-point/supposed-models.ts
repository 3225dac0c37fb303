/** Compiles models that callers only assume, in separate threads, so that stored models need not wait. Each tenant has a share. */
import { boundIssues } from '../decide/language/model-bounds.ts'
import { knownModel, ModelPending } from '../decide/models/known-models.ts'
import { createTenantPlaces } from '../store/tenant-places.ts'
import { type Aside, compileIn, createAside } from '../worker/worker.ts'

/** How many texts are compiled at once and how many wait, in total and per tenant. A text may take ten seconds. */
const TEXTS = { open: { all: 2, tenant: 1 }, waiting: { all: 256, tenant: 16 } }

/** `threads`: as many as texts may be compiled at once. */
export function createSupposedModels(
  threads: readonly Aside[] = Array.from({ length: TEXTS.open.all }, () => createAside()),
) {
  const free = [...threads]
  const places = createTenantPlaces(TEXTS)
  return {
    /**
     * Compiles the text, so that its next use finds the model or its issues. Throws PdpError `overloaded` when too many wait, and
     * `request_invalid` when the text takes too much time or memory.
     */
    async prepare(organization: string, text: string): Promise<void> {
      if (!isPending(text)) return
      await places.run(organization, async () => {
        const thread = free.pop()
        if (thread === undefined) throw new TypeError('there are more places than threads')
        try {
          if (isPending(text)) await compileIn(thread, text)
        } finally {
          free.push(thread)
        }
      })
    },
  }
}

/** True if a thread must compile the text. One beyond the bounds is refused without compiling. */
function isPending(text: string): boolean {
  if (boundIssues(text).length > 0) return false
  try {
    knownModel(text)
  } catch (err) {
    return err instanceof ModelPending
  }
  return false
}
