/** Conditions beside cel-go, which OpenFGA and SpiceDB evaluate with: whatever it cannot evaluate is an error here too. */
import { describe, expect, test } from 'vitest'
import { ExpressionMistake } from '../../../../../pdp/engine/decide/conditions/expression.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'
import { type CelAnswer, type CelQuestion, celGo } from '../../../../differential/cel-go/ask.ts'
import { conversionQuestions } from '../../../../differential/cel-go/conversions.ts'
import { randomQuestion } from '../../../../differential/cel-go/random.ts'
import { seeded } from '../../../../sidecar/fuzz/targets.ts'
import { compile, told } from './told.ts'

const ask = celGo()
const TIMEOUT_MS = 600_000

/** True, false, or why not. */
function ours({ expression, types, values }: CelQuestion): boolean | string {
  try {
    return told(compile(expression, types), values as JsonObject)
  } catch (err) {
    if (err instanceof ExpressionMistake) return `refused: ${err.message}`
    throw err
  }
}

/** `question` as ours; it has one answer for what cel-go says. */
function differences(
  questions: readonly CelQuestion[],
  agrees: (question: CelQuestion, answer: CelAnswer) => string | null,
): readonly string[] {
  if ('missing' in ask) throw new Error(ask.missing)
  const answers = ask(questions)
  return questions.flatMap((question, i) => {
    const answer = answers[i]
    const found = answer === undefined ? 'there is no answer' : agrees(question, answer)
    return found === null ? [] : [`${JSON.stringify(question)}: cel-go ${JSON.stringify(answer)}, here ${found}`]
  })
}

describe.skipIf('missing' in ask)(`conditions beside cel-go${'missing' in ask ? `: ${ask.missing}` : ''}`, () => {
  test('conversions give what cel-go gives, and an error where it has one', { timeout: TIMEOUT_MS }, () => {
    const questions = conversionQuestions()
    const found = differences(questions, (question, answer) => {
      const want = 'value' in answer ? String(answer.value) : ''
      const asked = { ...question, expression: `(${question.expression}) == want` }
      const told = ours({
        ...asked,
        types: { ...question.types, want: 'string' },
        values: { ...question.values, want },
      })
      return 'value' in answer ? (told === true ? null : String(told)) : typeof told === 'string' ? null : String(told)
    })
    expect(found).toEqual([])
    expect(questions.length).toBeGreaterThan(3_000)
  })

  test.each([1, 2, 3])('random expressions of seed %i have the answers of cel-go', { timeout: TIMEOUT_MS }, (seed) => {
    const random = seeded(seed)
    const values = { true: 0, false: 0, error: 0 }
    const found = differences(
      Array.from({ length: 5_000 }, () => randomQuestion(random)),
      (question, answer) => {
        const told = ours(question)
        // A bound of ours, which docs/models.md names.
        if (String(told).includes('would take too long')) return null
        if (typeof told === 'boolean') told ? values.true++ : values.false++
        else values.error++
        return ('value' in answer ? answer.value === told : typeof told === 'string') ? null : String(told)
      },
    )
    expect(found).toEqual([])
    expect(Math.min(values.true, values.false, values.error)).toBeGreaterThan(300)
  })
})
