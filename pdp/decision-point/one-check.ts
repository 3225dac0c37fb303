/** One check by itself, which applications ask on every request: no reasons and no revision, and little is allocated. */
import { type Asked, answerCheck, isUndecided } from '../decide/check.ts'
import { ConditionRun } from '../decide/conditions/run.ts'
import { NO_MODEL } from '../decide/model.ts'
import { type ModelCompiler, ModelPending } from '../decide/models/known-models.ts'
import type { View } from '../decide/view.ts'
import type { PermissionCheck } from '../domain/decision.ts'
import type { JsonObject } from '../domain/json.ts'
import type { SnapshotEvaluator } from '../store/cache/question.ts'
import { withModels } from '../worker/worker.ts'

type Alone = { readonly asked: Asked; readonly check: PermissionCheck; readonly context: JsonObject | undefined }

/** Where everything is in this process; without a promise but where a model is still to be compiled. */
export function allowedNow(currentView: () => View, compile: ModelCompiler, alone: Alone): boolean | Promise<boolean> {
  try {
    return isAllowed(currentView(), compile, alone) === true
  } catch (error) {
    if (!(error instanceof ModelPending)) throw error
    return withModels(() => isAllowed(currentView(), compile, alone) === true)
  }
}

export async function allowedLater(
  { evaluator, compile }: { readonly evaluator: SnapshotEvaluator; readonly compile: ModelCompiler },
  alone: Alone,
): Promise<boolean> {
  const { organization } = alone.asked
  return (await evaluator.ask({ organization, evaluate: (view) => isAllowed(view, compile, alone) })).value
}

/** Undefined while rows are missing. */
function isAllowed(view: View, compile: ModelCompiler, of: Alone): boolean | undefined {
  const { asked, check, context } = of
  const manifests = view.manifests()
  if (manifests === undefined) return collectMissingRows(view, asked, check)
  const question = context === undefined ? asked : { ...asked, conditions: new ConditionRun(view, context) }
  return answerCheck(view, compile(manifests), question, check)?.allowed
}

/** Evaluates without a model, only to collect the rows that have to be loaded. The result is discarded. */
function collectMissingRows(view: View, asked: Asked, check: PermissionCheck): undefined {
  try {
    answerCheck(view, NO_MODEL, asked, check)
  } catch (error) {
    if (!isUndecided(error)) throw error
  }
}
