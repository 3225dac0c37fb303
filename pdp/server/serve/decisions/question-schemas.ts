/** Schemas and readers that decisions and lists share: the subject of a question, and the tuples that come with it. */
import type { AskedSubject, ContextualTuple } from '../../../shared/domain/decision.ts'
import { PdpError, type ValidationIssue } from '../../../shared/domain/errors.ts'
import { isSubject, parseTuple, quote, typeOf } from '../../../shared/domain/names.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { object, TIMESTAMP, text } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { Question } from './answer.ts'

/** A name in a request. The limit exceeds that of real names, so that the engine refuses a longer one with a good message. */
export const NAME = { type: 'string', maxLength: 1_024 } as const

const SUBJECT_PARTS = object(
  {
    type: { ...NAME, description: 'user, service, or any other type that tuples name.' },
    id: { ...NAME, minLength: 1, description: '* for everybody of the type.' },
    relation: { ...NAME, description: 'All who have this relation on <type>:<id>, instead of that itself.' },
  },
  ['type', 'id'],
)
export const ASKED_SUBJECT = {
  ...SUBJECT_PARTS,
  type: ['string', 'object'],
  maxLength: 2_048,
  description: 'The text type:id or type:id#relation, as in tuples, or the same in parts.',
} as const
export type SubjectBody = string | AskedSubject

/** Reads a subject. Throws RequestProblem for a text that is none. */
export function readSubject(body: SubjectBody): AskedSubject {
  if (typeof body !== 'string') return body
  if (!isSubject(body))
    throw malformed([{ place: '/subject', message: `${quote(body)} is not type:id or type:id#relation` }])
  const [object = '', relation] = body.split('#')
  const type = typeOf(object)
  const named = { type, id: object.slice(type.length + 1) }
  return relation === undefined ? named : { ...named, relation }
}

const CONDITION = {
  ...object({ name: NAME, context: { type: 'object', additionalProperties: true } }, ['name']),
  description:
    'The tuple counts only while this condition holds; values in its context win over those of the question.',
}
const TUPLE = object({ object: NAME, relation: NAME, subject: NAME, condition: CONDITION }, [
  'object',
  'relation',
  'subject',
])
const CONTEXTUAL_TUPLES = {
  type: 'array',
  maxItems: 100,
  items: { ...TUPLE, type: ['string', 'object'], maxLength: 2_048 },
  description:
    'Tuples that count in this question only: type:id#relation@subject, or the same in parts. They count for relations, and never for memberships, roles or permission keys.',
} as const

/** Members by which a question assumes another state than the stored one. */
export const SUPPOSED = {
  contextual_tuples: CONTEXTUAL_TUPLES,
  without_tuples: {
    ...CONTEXTUAL_TUPLES,
    description:
      'Stored tuples that do not count in this question, in the same forms. Needs decisions:read as well. They go on counting for memberships, roles and permission keys.',
  },
  as_of: {
    ...TIMESTAMP,
    description:
      'The question is about what was true then, as far as the log of changes reaches back; people and clients are those of today. Needs decisions:read as well.',
  },
} as const

export const CONTEXT = {
  type: 'object',
  additionalProperties: true,
  description: 'Values of parameters of conditions, at most 32 KiB. What a tuple stores wins over them.',
} as const

export const CLIENTS = {
  type: 'array',
  maxItems: 16,
  items: text('^[\\x21\\x22\\x24-\\x7e]{1,256}$', 'the id of a client'),
} as const
export const SCOPES = { type: 'array', maxItems: 100, items: { type: 'string', maxLength: 128 } } as const

/** Converts `actors` and `scopes` to members of a question. A member that the request does not have is absent. */
export const readActing = ({
  actors,
  scopes,
}: {
  readonly actors?: readonly string[]
  readonly scopes?: readonly string[]
}): Pick<Question, 'actors' | 'scopes'> => ({
  ...(actors !== undefined && { actors: actors.map((id) => ({ type: 'service', id }) as const) }),
  ...(scopes !== undefined && { scopes }),
})

type TupleBody =
  | string
  | (Omit<ContextualTuple, 'condition'> & {
      readonly condition?: Partial<TupleCondition> & Pick<TupleCondition, 'name'>
    })

export type SupposedBody = {
  readonly contextual_tuples?: readonly TupleBody[]
  readonly without_tuples?: readonly TupleBody[]
  readonly as_of?: string
}

/** Reads these members. Throws RequestProblem with the position of each item that is no tuple. */
export const readSupposed = ({
  contextual_tuples: added = [],
  without_tuples: removed,
  as_of: asOf,
}: SupposedBody) => ({
  contextualTuples: readTuples(added, '/contextual_tuples'),
  ...(removed !== undefined && { withoutTuples: readTuples(removed, '/without_tuples') }),
  ...(asOf !== undefined && { asOfMs: Date.parse(asOf) }),
})

function readTuples(bodies: readonly TupleBody[], member: string): readonly ContextualTuple[] {
  const issues: ValidationIssue[] = []
  const tuples = bodies.flatMap((body, i) => {
    if (typeof body !== 'string') return [withContext(body)]
    try {
      return [parseTuple(body)]
    } catch (err) {
      if (!(err instanceof PdpError)) throw err
      issues.push({ place: `${member}/${i}`, message: err.message })
      return []
    }
  })
  if (issues.length > 0) throw malformed(issues)
  return tuples
}

function withContext({ condition, ...tuple }: Exclude<TupleBody, string>): ContextualTuple {
  return condition === undefined ? tuple : { ...tuple, condition: { context: {}, ...condition } }
}

/** The engine's places of issues, and the same places in the request's names. */
const PLACES: readonly (readonly [engine: RegExp, request: string])[] = [
  [/^\/contextualTuples/, '/contextual_tuples'],
  [/^\/withoutTuples/, '/without_tuples'],
  [/^\/asOfMs/, '/as_of'],
  [/^\/subjectRelation/, '/subject_relation'],
  [/^\/organization/, ':org'],
  [/^\/pageSize/, '?page_size'],
  [/^\/pageToken/, '?page_token'],
]

/** Waits for `work`. If it refuses the question, the places of the issues are changed to those of the request. */
export async function relocated<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (err) {
    if (!(err instanceof PdpError) || err.issues.length === 0) throw err
    throw malformed(
      err.issues.map(({ place, message }) => ({ place: placeOf(place), message })),
      err,
    )
  }
}

function placeOf(place: string): string {
  const [engine, request] = PLACES.find(([found]) => found.test(place)) ?? [/^/, '']
  return place.replace(engine, request)
}

const malformed = (issues: readonly ValidationIssue[], cause?: unknown): RequestProblem =>
  new RequestProblem('request_invalid', `the question is malformed: ${describe(issues)}`, { issues, cause })

const describe = (issues: readonly ValidationIssue[]): string =>
  issues.map(({ place, message }) => `${place} ${message}`).join('; ')
