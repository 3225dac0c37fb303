/** What the simulation writes and asks where conditions are in focus. */
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { JsonObject } from '../../../pdp/shared/domain/json.ts'
import { formatTuple } from '../../../pdp/shared/domain/names.ts'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'
import type { Rules, World } from '../../support/reference.ts'
import { put, putIf, tuple } from '../../support/tuples.ts'

export type Pick1 = <T>(items: readonly T[]) => T
export type Asked = {
  organization: string
  subject: string
  relation: string
  resource: string
  app: null
  context?: JsonObject
  contextual?: readonly Tuple[]
}
export const CONDITIONAL = {
  text: `model
  schema 1.1
type doc
  relations
    define blocked: [user, user with low]
    define viewer: [user, user with low, group#member, group#member with low] but not blocked
condition low(level: int) {
  level < 5
}
`,
  rules: {
    doc: {
      blocked: { direct: ['user', 'user with low'] },
      viewer: {
        base: { direct: ['user', 'user with low', 'group#member', 'group#member with low'] },
        butNot: { same: 'blocked' },
      },
    },
  },
} satisfies { text: string; rules: Rules }
export const conditionalManifest = (): Change => ({
  kind: 'manifest',
  manifest: { app: 'a', audiences: [], permissions: {}, roles: {}, model: CONDITIONAL.text },
})
const CONTEXTS: readonly JsonObject[] = [{}, { level: 1 }, { level: 9 }]

/** The reference of its condition. */
function holdsLow(context: JsonObject, { condition }: Tuple): boolean | null {
  const { level } = { ...context, ...condition?.context }
  return typeof level === 'number' ? level < 5 : null
}

/** As a question has it that brings a context and tuples, which count in its organization in place of those stored. */
export function worldFor(
  world: World,
  of: { organization: string; context?: JsonObject | undefined; contextual?: readonly Tuple[] | undefined },
): World {
  const { organization, context = {}, contextual = [] } = of
  const own = world.content.get(organization)
  const named = new Map([...(own?.tuples ?? []), ...contextual].map((t) => [formatTuple(t), t]))
  const content = new Map(world.content)
  if (own !== undefined) content.set(organization, { ...own, tuples: [...named.values()] })
  return { ...world, content, holds: (t) => holdsLow(context, t) }
}

const CONDITIONAL_TUPLES = [
  'doc:0#viewer@user:u0',
  'doc:0#viewer@group:g0#member',
  'doc:0#blocked@user:u0',
  'doc:0#blocked@user:u1',
] as const

export function conditionalWrite(pick: Pick1): Change {
  const text = pick(CONDITIONAL_TUPLES)
  return pick<() => Change>([
    () => put(text),
    () => putIf(text, 'low', pick(CONTEXTS)),
    () => putIf(text, 'low', pick(CONTEXTS)),
    () => ({ kind: 'tuple', op: 'delete', tuple: tuple(text) }),
    () => put('group:g0#member@user:u1'),
    conditionalManifest,
  ])()
}

export function conditionalQuestion(pick: Pick1): Asked {
  const coming = putIf(pick(CONDITIONAL_TUPLES), 'low', pick(CONTEXTS))
  const contextual = pick([[], [], coming.kind === 'tuple' ? [coming.tuple] : []])
  const subject = pick(['user:u0', 'user:u0', 'user:u1'])
  return {
    ...{ organization: 'o0', subject, relation: 'viewer', resource: 'doc:0', app: null },
    ...{ context: pick(CONTEXTS), contextual },
  }
}
