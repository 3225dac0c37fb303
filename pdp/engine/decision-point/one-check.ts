/** Answers a single check, which applications ask on every request: without reasons and revision, with few allocations. */

import type { PermissionCheck } from '../../shared/domain/decision.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import { type Answer, answerWithin, type CheckInput, isUndecided } from '../decide/check.ts'
import { ConditionRun } from '../decide/conditions/run.ts'
import { NO_MODEL } from '../decide/model.ts'
import { type ModelCompiler, ModelPending } from '../decide/models/known-models.ts'
import { after, Paused, type Slice, type Sliced } from '../decide/slices.ts'
import type { View } from '../decide/view.ts'
import type { Parts } from './deciding.ts'

type Alone = { readonly asked: CheckInput; readonly check: PermissionCheck; readonly context: JsonObject | undefined }

/** The answer of a store in this process, without context. A promise only if the check pauses or a model must be compiled. */
export function allowedNow(
  currentView: () => View,
  parts: Parts,
  asked: CheckInput,
  check: PermissionCheck,
): boolean | Promise<boolean> {
  try {
    const view = currentView()
    const manifests = view.manifests()
    if (manifests !== undefined) {
      const answer = answerWithin(parts.turns.newSlice(), { view, model: parts.compile(manifests), asked, check })
      if (!(answer instanceof Paused)) return answer?.allowed === true
    }
  } catch (err) {
    if (!(err instanceof ModelPending)) throw err
  }
  return allowedLater(parts, { asked, check, context: undefined })
}

export async function allowedLater({ evaluator, compile }: Parts, alone: Alone): Promise<boolean> {
  const { organization } = alone.asked
  const evaluate = (view: View, slice: Slice) => isAllowed(slice, view, compile, alone)
  return (await evaluator.ask({ organization, evaluate })).value
}

/** The answer to the check; undefined while rows are missing. */
function isAllowed(slice: Slice, view: View, compile: ModelCompiler, of: Alone): Sliced<boolean | undefined> {
  const { asked, check, context } = of
  const manifests = view.manifests()
  if (manifests === undefined) return collectMissingRows(slice, view, of)
  const question = context === undefined ? asked : { ...asked, conditions: new ConditionRun(view, context) }
  const answer = answerWithin(slice, { view, model: compile(manifests), asked: question, check })
  return after(answer, (of: Answer | undefined) => of?.allowed)
}

/** Evaluates without a model, only to collect the rows that have to be loaded. The result is discarded. */
function collectMissingRows(slice: Slice, view: View, { asked, check }: Alone): undefined {
  try {
    answerWithin(slice, { view, model: NO_MODEL, asked, check })
  } catch (err) {
    if (!isUndecided(err)) throw err
  }
}
