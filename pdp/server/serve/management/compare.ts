/** Tells which subjects would gain or lose a relation under another model or other tuples. Changes nothing. */
import type { FastifyInstance } from 'fastify'
import { MODEL_CHARACTERS_MAX } from '../../../engine/decide/language/model-bounds.ts'
import type { ComparisonJson } from '../../../engine/decision-point/compare-shapes.ts'
import { NAME, readSupposed, relocated, SUPPOSED, type SupposedBody } from '../decisions/question-schemas.ts'
import { ID, object, whole } from '../http/schemas.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

type Body = Omit<SupposedBody, 'as_of'> & {
  readonly relation: string
  readonly type: string
  readonly subject_type?: string
  readonly app?: string
  readonly model?: { readonly app: string; readonly text: string | null }
  readonly after?: string
}
const EFFECTS = {
  type: 'array',
  items: whole({ subject: { type: 'string' }, resource: { type: 'string' } }),
}

const ANSWER = whole({
  gains: { ...EFFECTS, description: 'The first 100.' },
  loses: { ...EFFECTS, description: 'The first 100.' },
  gains_count: { type: 'integer', description: 'All that were found: at least so many, if not complete.' },
  loses_count: { type: 'integer', description: 'All that were found: at least so many, if not complete.' },
  decided: {
    type: 'boolean',
    description: 'False: something could not be decided, or a resource has more than 10,000 subjects.',
  },
  complete: { type: 'boolean', description: 'False: there is more than was compared.' },
  resources_compared: { type: 'integer' },
  resources_count: {
    type: ['integer', 'null'],
    description: 'Resources that the change may touch; null: more than 100,000, or a call with `after`.',
  },
  next: {
    type: ['string', 'null'],
    description: 'Where the time of one call ended: send it as `after`. Null: no resource is left.',
  },
})

export function addCompare(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org'; body: Body }>(app, deps, {
    tag: 'Decisions',
    scope: 'decisions:read',
    organizationScope: 'organization',
    method: 'POST',
    path: '/v1/organizations/:org/compare',
    operation: 'compareAccess',
    summary: 'Who would gain and who would lose a relation with another model or other tuples. Nothing is written.',
    body: object(
      {
        relation: NAME,
        type: { ...NAME, description: 'Type of the resources.' },
        subject_type: { ...NAME, description: 'Type of the subjects; user by default.' },
        app: { ...ID, description: 'The app whose roles answer permission keys on the organization.' },
        model: {
          ...whole({ app: ID, text: { type: ['string', 'null'], maxLength: MODEL_CHARACTERS_MAX } }),
          description: "In place of the app's current model.",
        },
        contextual_tuples: SUPPOSED.contextual_tuples,
        without_tuples: SUPPOSED.without_tuples,
        after: {
          type: 'string',
          maxLength: 1_024,
          description: 'Goes on after this resource: `next` of the answer before.',
        },
      },
      ['relation', 'type'],
    ),
    answer: ANSWER,
    async handle({ params, body }) {
      const { relation, type, subject_type, app: asked, model, after } = body
      const found = await relocated(
        deps.pdp.compare({
          organization: params.org,
          relation,
          type,
          ...(subject_type !== undefined && { subjectType: subject_type }),
          ...(asked !== undefined && { app: asked }),
          ...(model !== undefined && { model }),
          ...readSupposed(body),
          ...(after !== undefined && { after }),
        }),
      )
      const { gains, loses, gainsCount, losesCount, resourcesCompared, resourcesCount, decided, complete, next } = found
      const counts = { gains_count: gainsCount, loses_count: losesCount }
      const looked = { resources_compared: resourcesCompared, resources_count: resourcesCount }
      const answer: ComparisonJson = { gains, loses, ...counts, decided, complete, ...looked, next }
      return ok(answer)
    },
  })
}
