/** What is right for each question of a world, by the reference, and how an answer compares with it. */
import type { World as ReferenceWorld } from '../support/reference.ts'
import { referenceAnswer } from '../support/reference.ts'
import type { Said } from './openfga.ts'
import type { Check, ListObjects, ListUsers, World } from './worlds.ts'

/** `wrong`: another answer than the right one. `none`: an error where there is an answer, or the reverse. */
export type Verdict = 'right' | 'wrong' | 'none'
export type Judge = {
  /** Null: the answer would depend on its own absence. */
  check(asked: Check): boolean | null
  objects(asked: ListObjects): readonly string[] | null
  /** Objects of the type that tuples name as such. */
  objectsOf(type: string): readonly string[]
  /** Those whom tuples name, and `type:*` for whoever is not named. */
  users(asked: ListUsers): readonly string[] | null
}

export function createJudge(world: World): Judge {
  const reference: ReferenceWorld = {
    clockMs: 0,
    organizations: new Map([['o', { parent: null }]]),
    content: new Map([['o', { tuples: world.tuples, memberships: new Map(), grants: [] }]]),
    environmentGrants: [],
    roles: [],
    manifests: [],
    rules: world.rules,
  }
  const check = ({ subject, relation, object }: Check): boolean | null =>
    referenceAnswer(reference, { organization: 'o', subject, relation, resource: object, app: null })
  const namesOf = (type: string, usersets: boolean): readonly string[] => {
    const named = world.tuples.flatMap(({ object, subject }) => [
      object,
      usersets ? subject.replace(/#.*/, '') : subject,
    ])
    return [...new Set(named)].filter((name) => name.startsWith(`${type}:`) && !/[#*]/.test(name)).sort()
  }
  return {
    check,
    objects({ subject, relation, type }) {
      const own = subject.includes('#')
        ? [subject.replace(/#.*/, '')].filter((name) => name.startsWith(`${type}:`))
        : []
      return holding([...new Set([...objectsOf(world, type), ...own])].sort(), (object) =>
        check({ subject, relation, object }),
      )
    },
    objectsOf: (type) => objectsOf(world, type),
    users({ object, relation, type, subjectRelation }) {
      if (subjectRelation !== null) {
        const own = object.startsWith(`${type}:`) ? [object] : []
        const usersets = [...new Set([...namesOf(type, true), ...own])]
          .sort()
          .map((name) => `${name}#${subjectRelation}`)
        return holding(usersets, (subject) => check({ subject, relation, object }))
      }
      const everybody = check({ subject: `${type}:nobody`, relation, object })
      const found = holding(namesOf(type, false), (subject) => check({ subject, relation, object }))
      if (everybody === null || found === null) return null
      return everybody ? [`${type}:*`, ...found] : found
    },
  }
}

const objectsOf = (world: World, type: string): readonly string[] => [
  ...new Set(world.tuples.map(({ object }) => object).filter((object) => object.startsWith(`${type}:`))),
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
