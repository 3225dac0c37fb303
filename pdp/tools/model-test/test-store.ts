/** Tuples under a model in a memory store, for a store file's tests. The engine is that of a running PDP. */
import { type Answer, answerCheck } from '../../engine/decide/check.ts'
import { ConditionRun } from '../../engine/decide/conditions/run.ts'
import type { Model } from '../../engine/decide/model.ts'
import type { View } from '../../engine/decide/view.ts'
import { EventLoopTurns } from '../../engine/store/cache/event-loop-turns.ts'
import { memoryStore } from '../../engine/store/memory/memory.ts'
import { residentEvaluator } from '../../engine/store/memory/resident.ts'
import type { Change } from '../../shared/domain/change.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import { Coding } from './name-coding.ts'
import type { UserFilter } from './store-file.ts'
import type { FileTuple } from './tuple-file.ts'

export type World = {
  /** `user`: `type:id`, `type:id#relation` or `type:*`. All methods throw PdpError `evaluation_limit` and `condition_failed`. */
  check(user: string, relation: string, object: string, context: JsonObject): Promise<boolean>
  /** Like `check`, with the chain of tuples or the missing tuples, under the file's names. */
  explain(user: string, relation: string, object: string, context: JsonObject): Promise<ReturnType<typeof explained>>
  objects(user: string, relation: string, type: string, context: JsonObject): Promise<readonly string[]>
  /** The users who hold it by name; `type:*` if everybody of the type does, except some who are named. */
  users(object: string, relation: string, filter: UserFilter, context: JsonObject): Promise<readonly string[]>
}
type Question = { readonly subject: string; readonly relation: string; readonly object: string }

const ORGANIZATION = 'tests'
const context = { actor: 'model test', requestId: 'model test' }

/** @param tuples must be allowed by the model. */
export async function createWorld(model: Model, tuples: readonly FileTuple[]): Promise<World> {
  const coding = new Coding()
  const coded = coding.model(model)
  const store = memoryStore()
  const organization = { id: ORGANIZATION, name: ORGANIZATION, parent: null }
  await store.write(ENVIRONMENT, [{ kind: 'organization', id: ORGANIZATION, organization }], { context })
  const changes = new Map<string, Change>()
  for (const tuple of tuples.flatMap((t) => coding.tuples(t))) {
    changes.set(`${tuple.object}#${tuple.relation}@${tuple.subject}`, { kind: 'tuple', op: 'write', tuple })
  }
  if (changes.size > 0) await store.write(ORGANIZATION, [...changes.values()], { context })
  const moments = residentEvaluator(store, new EventLoopTurns())
  const answers = async (evaluate: (view: View) => readonly Answer[] | undefined): Promise<readonly Answer[]> => {
    try {
      return (await moments.ask({ organization: ORGANIZATION, evaluate })).value
    } catch (err) {
      if (!(err instanceof PdpError)) throw err
      throw new PdpError(err.code, coding.decoded(err.message), { missingContext: err.missingContext })
    }
  }
  const ask = async (questions: readonly Question[], asked: JsonObject): Promise<readonly boolean[]> =>
    (await answers((view) => answerAll(view, coded, { questions, context: asked }))).map(({ allowed }) => allowed)
  const question = (user: string, relation: string, object: string): Question => ({
    subject: coding.subject(user),
    relation: coding.relation(relation),
    object: coding.object(object),
  })
  const named = namesIn(tuples)
  return {
    async check(user, relation, object, asked) {
      return (await ask([question(user, relation, object)], asked))[0] === true
    },
    async explain(user, relation, object, asked) {
      const questions = [question(user, relation, object)]
      const [answer] = await answers((view) => answerAll(view, coded, { questions, context: asked, explain: true }))
      return explained(answer, (text) => coding.decoded(text))
    },
    async objects(user, relation, type, asked) {
      const candidates = ofType([...named.objects, user.replace(/#.*$/, '')], type)
      const common = { subject: coding.subject(user), relation: coding.relation(relation) }
      const questions = candidates.map((object) => ({ ...common, object: coding.object(object) }))
      const holds = await ask(questions, asked)
      return candidates.filter((_, i) => holds[i] === true)
    },
    async users(object, relation, filter, asked) {
      const everybody = `${filter.type}:*`
      const candidates =
        filter.relation === null
          ? [...ofType([...named.users], filter.type), everybody]
          : ofType([...named.objects, object], filter.type).map((found) => `${found}#${filter.relation}`)
      const holds = await ask(
        candidates.map((user) => ({
          subject: coding.subject(user),
          relation: coding.relation(relation, filter.relation === null && user !== everybody ? 'named' : 'plain'),
          object: coding.object(object),
        })),
        asked,
      )
      return candidates.filter((_, i) => holds[i] === true)
    },
  }
}

function explained(answer: Answer | undefined, decoded: (text: string) => string) {
  const { path = [], missing = [], details = [] } = answer?.reason ?? {}
  const texts = (all: readonly string[]): readonly string[] => [...new Set(all.map(decoded))]
  const steps = path.flatMap((step) => Object.entries(step).map(([kind, text]) => `${kind.replace('_', ' ')} ${text}`))
  return { allowed: answer?.allowed === true, path: texts(steps), missing: texts(missing), details: texts(details) }
}

function answerAll(
  view: View,
  model: Model,
  of: { readonly questions: readonly Question[]; readonly context: JsonObject; readonly explain?: true },
): readonly Answer[] | undefined {
  const { questions, context, ...rest } = of
  const common = { ...rest, organization: ORGANIZATION, app: null, conditions: new ConditionRun(view, context) }
  const answers: Answer[] = []
  for (const { subject, relation, object: resource } of questions) {
    const answer = answerCheck(view, model, { ...common, subject }, { relation, resource })
    if (answer === undefined) return undefined
    answers.push(answer)
  }
  return answers
}

/** All possible names of an answer; `objects` includes those in usersets. */
function namesIn(tuples: readonly FileTuple[]): { objects: ReadonlySet<string>; users: ReadonlySet<string> } {
  const objects = new Set<string>()
  const users = new Set<string>()
  for (const { object, user } of tuples) {
    objects.add(object)
    if (!user.includes('#') && !user.endsWith(':*')) users.add(user)
    if (!user.endsWith(':*')) objects.add(user.replace(/#.*$/, ''))
  }
  return { objects, users }
}

const ofType = (names: readonly string[], type: string): readonly string[] => [
  ...new Set(names.filter((name) => name.startsWith(`${type}:`) && !name.endsWith(':*'))),
]
