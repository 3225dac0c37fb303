/** Compiles models that callers only suppose, in threads of their own, so that no stored model waits. Each tenant gets a share. */
import { boundIssues } from '../decide/language/model-bounds.ts'
import { knownModel, ModelPending } from '../decide/models/known-models.ts'
import { createTenantPlaces } from '../store/tenant-places.ts'
import { type Aside, compileIn, createAside } from '../worker/worker.ts'

/** The most texts that are compiled at once and that wait, in all and of one tenant. A text may take ten seconds. */
const TEXTS = { open: { all: 2, tenant: 1 }, waiting: { all: 256, tenant: 16 } }

/** `threads`: one for each text that may be compiled at once. */
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

/** Must the text be compiled in a thread? Not if it exceeds a bound, since it is then refused. */
function isPending(text: string): boolean {
  if (boundIssues(text).length > 0) return false
  try {
    knownModel(text)
  } catch (err) {
    return err instanceof ModelPending
  }
  return false
}
