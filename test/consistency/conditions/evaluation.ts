/** How a schedule of the simulation evaluates a question. */
import type { Steps } from '../../../pdp/engine/decide/slices.ts'
import type { View } from '../../../pdp/engine/decide/view.ts'
import type { Asked } from './world.ts'

/** What evaluates, of the code under test. */
export type EvaluationParts = {
  readonly answerCheck: typeof import('../../../pdp/engine/decide/check.ts').answerCheck
  readonly ConditionRun: typeof import('../../../pdp/engine/decide/conditions/run.ts').ConditionRun
  readonly relationViewOf: typeof import('../../../pdp/engine/decide/views/contextual-tuples.ts').relationViewOf
  readonly createModelCompiler: typeof import('../../../pdp/engine/decide/models/known-models.ts').createModelCompiler
}
type Evaluated = { readonly allowed: boolean | null | 'refused' }

/** `paused`: asks, lets others have their turn, and asks again what has to be the same. */
export function evaluationBy(
  engine: EvaluationParts,
  compile: ReturnType<EvaluationParts['createModelCompiler']>,
  paused: boolean,
) {
  return function* evaluation(view: View, q: Asked): Steps<Evaluated | undefined> {
    const manifests = view.manifests()
    const model = manifests === undefined ? new Map() : compile(manifests)
    try {
      const known = manifests === undefined ? null : model
      const relationView = engine.relationViewOf(view, known, q.organization, q.contextual ?? [])
      const asked = { ...q, relationView, conditions: new engine.ConditionRun(view, q.context) }
      if (paused) {
        engine.answerCheck(view, model, asked, q)
        yield
      }
      const answer = engine.answerCheck(view, model, asked, q)
      return manifests === undefined || answer === undefined ? undefined : { allowed: answer.allowed }
    } catch (err) {
      const code = err instanceof Error && 'code' in err ? err.code : null
      if (code === 'condition_failed') return manifests === undefined ? undefined : { allowed: null }
      // Another model was in force, which does not let the tuple of the question count.
      if (code === 'request_invalid') return { allowed: 'refused' }
      throw err
    }
  }
}
