/** The checks of one request, over one view. */

import type { ContextualTuple, PermissionCheck } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import { answerWithin, type CheckInput, isUndecided } from '../decide/check.ts'
import { ConditionRun } from '../decide/conditions/run.ts'
import { NO_MODEL } from '../decide/model.ts'
import type { ModelCompiler } from '../decide/models/known-models.ts'
import { finished, Paused, type Slice, type Steps } from '../decide/slices.ts'
import type { View } from '../decide/view.ts'
import { relationViewOf } from '../decide/views/contextual-tuples.ts'
import type { CheckOutcome } from './results.ts'

/** How many tuples all checks of a request may visit together, unless the bound of a single check is higher. */
export const TUPLES_PER_REQUEST_MAX = 100_000

/** The manifest of the app that declares one of the audiences. */
export const ownerOf = (manifests: readonly Manifest[], audiences: readonly string[]): Manifest | undefined =>
  manifests.find((manifest) => manifest.audiences.some((audience) => audiences.includes(audience)))

export type AllChecks = {
  readonly asked: CheckInput & { readonly tuplesMax: number }
  readonly audiences: readonly string[]
  readonly checks: readonly PermissionCheck[]
  readonly contextualTuples: readonly ContextualTuple[]
  readonly withoutTuples: readonly ContextualTuple[]
  readonly context: JsonObject | undefined
  /** Counts the tuples of all checks of the request, earlier ones included. */
  readonly meter?: { tuplesCount: number }
}

/** Every check is evaluated before any row is loaded, so that one load serves them all. Undefined while rows are missing. */
export function* answerAll(
  slice: Slice,
  view: View,
  compile: ModelCompiler,
  request: AllChecks,
): Steps<readonly CheckOutcome[] | undefined> {
  const manifests = view.manifests()
  const { audiences, checks, contextualTuples, withoutTuples } = request
  const owner = ownerOf(manifests ?? [], audiences)
  // Without the model, the evaluation only finds out which rows to load.
  const model = manifests === undefined ? NO_MODEL : compile(manifests)
  const known = manifests === undefined ? null : model
  const relationView = relationViewOf(view, known, request.asked.organization, contextualTuples, withoutTuples)
  const conditions = new ConditionRun(view, request.context)
  const { meter = { tuplesCount: 0 } } = request
  const asked = { ...request.asked, app: owner?.app ?? request.asked.app, meter, relationView, conditions }
  const tuplesMax = Math.max(TUPLES_PER_REQUEST_MAX, request.asked.tuplesMax)
  const outcomes: CheckOutcome[] = []
  let missing = manifests === undefined
  for (const check of checks) {
    try {
      assertWithin(tuplesMax, meter)
      const found = answerWithin(slice, { view, model, asked, check })
      const answer = found instanceof Paused ? yield* finished(found) : found
      assertWithin(tuplesMax, meter)
      if (answer === undefined) missing = true
      else outcomes.push(answer)
    } catch (err) {
      if (!isUndecided(err)) throw err
      outcomes.push({ undecided: err })
    }
  }
  return missing ? undefined : outcomes
}

function assertWithin(tuplesMax: number, { tuplesCount }: { readonly tuplesCount: number }): void {
  if (tuplesCount <= tuplesMax) return
  throw new PdpError('evaluation_limit', `the request visited more than ${tuplesMax} tuples`)
}
