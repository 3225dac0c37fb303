/** What is right for each question of a world, by the reference, and how an answer compares with it. */
import { formatTuple } from '../../pdp/shared/domain/names.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import type { World as ReferenceWorld } from '../support/reference.ts'
import { referenceAnswer } from '../support/reference.ts'
import { holds } from './conditions.ts'
import type { Said } from './openfga.ts'
import type { Brought, Check, ListObjects, ListUsers, World } from './worlds.ts'

/** `wrong`: another answer than the right one. `none`: an error where there is an answer, or the reverse. */
export type Verdict = 'right' | 'wrong' | 'none'
export type Judge = {
  /** Null: the answer would depend on its own absence. */
  check(asked: Check): boolean | null
  objects(asked: ListObjects): readonly string[] | null
  /** Objects of the type that tuples name as such. */
  objectsOf(type: string, brought: Brought): readonly string[]
  /** Those whom tuples name, and `type:*` for whoever is not named. */
  users(asked: ListUsers): readonly string[] | null
}

/** @param undecided - what a condition comes to of which nothing can be told */
export function createJudge(world: World, undecided: boolean | null = null): Judge {
  const known = new Map<string, ReferenceWorld>()
  const tuplesOf = ({ contextual }: Brought): readonly Tuple[] => [
    ...new Map([...world.tuples, ...contextual].map((tuple) => [formatTuple(tuple), tuple])).values(),
  ]
  const newWorld = (brought: Brought): ReferenceWorld => ({
    clockMs: 0,
    organizations: new Map([['o', { parent: null }]]),
    content: new Map([['o', { tuples: tuplesOf(brought), memberships: new Map(), grants: [] }]]),
    environmentGrants: [],
    roles: [],
    manifests: [],
    rules: world.rules,
    holds: (tuple) => holds(tuple, brought.context) ?? undecided,
  })
  const worldOf = ({ context, contextual }: Brought): ReferenceWorld => {
    const name = JSON.stringify([context, contextual])
    const found = known.get(name) ?? newWorld({ context, contextual })
    known.set(name, found)
    return found
  }
  const check = ({ subject, relation, object, ...brought }: Check): boolean | null =>
    referenceAnswer(worldOf(brought), { organization: 'o', subject, relation, resource: object, app: null })
  const namesOf = (type: string, usersets: boolean, brought: Brought): readonly string[] => {
    const named = tuplesOf(brought).flatMap(({ object, subject }) => [
      object,
      usersets ? subject.replace(/#.*/, '') : subject,
    ])
    return [...new Set(named)].filter((name) => name.startsWith(`${type}:`) && !/[#*]/.test(name)).sort()
  }
  return {
    check,
    objects({ subject, relation, type, ...brought }) {
      const own = subject.includes('#')
        ? [subject.replace(/#.*/, '')].filter((name) => name.startsWith(`${type}:`))
        : []
      return holding([...new Set([...objectsOf(tuplesOf(brought), type), ...own])].sort(), (object) =>
        check({ subject, relation, object, ...brought }),
      )
    },
    objectsOf: (type, brought) => objectsOf(tuplesOf(brought), type),
    users({ object, relation, type, subjectRelation, ...brought }) {
      if (subjectRelation !== null) {
        const own = object.startsWith(`${type}:`) ? [object] : []
        const usersets = [...new Set([...namesOf(type, true, brought), ...own])]
          .sort()
          .map((name) => `${name}#${subjectRelation}`)
        return holding(usersets, (subject) => check({ subject, relation, object, ...brought }))
      }
      // Nobody is held whom no tuple names, unless one names everybody.
      const isNamed = tuplesOf(brought).some((tuple) => tuple.subject === `${type}:*`)
      const everybody = isNamed && check({ subject: `${type}:nobody`, relation, object, ...brought })
      const found = holding(namesOf(type, false, brought), (subject) =>
        check({ subject, relation, object, ...brought }),
      )
      if (everybody === null || found === null) return null
      return everybody ? [`${type}:*`, ...found] : found
    },
  }
}

const objectsOf = (tuples: readonly Tuple[], type: string): readonly string[] => [
  ...new Set(tuples.map(({ object }) => object).filter((object) => object.startsWith(`${type}:`))),
]

function holding(names: readonly string[], truth: (name: string) => boolean | null): readonly string[] | null {
  const truths = names.map(truth)
  return truths.includes(null) ? null : names.filter((_, i) => truths[i] === true)
}

export function compareCheck(right: boolean | null, said: Said<boolean>): Verdict {
  if ('error' in said || right === null) return 'error' in said && right === null ? 'right' : 'none'
  return said.value === right ? 'right' : 'wrong'
}

export function compareList(right: readonly string[] | null, said: Said<readonly string[]>): Verdict {
  if ('error' in said || right === null) return 'error' in said && right === null ? 'right' : 'none'
  return JSON.stringify([...said.value].sort()) === JSON.stringify([...right].sort()) ? 'right' : 'wrong'
}

/** OpenFGA leaves out of a list whom a wildcard covers, so that only what the list says can be right or wrong. */
export function compareOpenFgaUsers(right: readonly string[] | null, said: Said<readonly string[]>): Verdict {
  if ('error' in said || right === null) return 'error' in said && right === null ? 'right' : 'none'
  const everybody = said.value.find((name) => name.endsWith(':*'))
  const wanted = right.filter((name) => everybody === undefined || name === everybody)
  const isRight = said.value.every((name) => right.includes(name)) && wanted.every((name) => said.value.includes(name))
  return isRight ? 'right' : 'wrong'
}
