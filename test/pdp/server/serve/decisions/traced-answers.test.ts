/** The span of a question holds what was decided, and never what was asked. */
import { expect, test } from 'vitest'
import { traceAnswers } from '../../../../../pdp/server/serve/decisions/traced-answers.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { createSpans } from '../../../../../pdp/shared/process/tracing/spans.ts'
import { createTracing, type FinishedSpan } from '../../../../../pdp/shared/process/tracing/tracing.ts'

const QUESTION = { permissions: [], entitlements: [], subject: null, explain: false }

test.each([
  ['a problem', new PdpError('request_invalid', 'resource "invoice:of-alice" is not a name'), 'request_invalid'],
  ['an error of the database', Object.assign(new Error('invalid input: "of-alice"'), { code: '22P02' }), '22P02'],
  ['a fault', new TypeError('cannot read of-alice'), 'TypeError'],
  ['something that is no error', 'of-alice', 'unknown'],
])(
  '%s is named by its code or its type, because its message may say who was asked about',
  async (_what, thrown, said) => {
    const finished: FinishedSpan[] = []
    const sampler = { ratio: 1, parentBased: true }
    const spans = createSpans(createTracing({ sampler, finish: (span) => finished.push(span) }))
    const answer = traceAnswers(() => Promise.reject(thrown), spans)
    await expect(answer({ active: false }, QUESTION)).rejects.toBe(thrown)
    expect(finished).toMatchObject([{ name: 'decide', error: said }])
    expect(JSON.stringify(finished)).not.toContain('of-alice')
  },
)
