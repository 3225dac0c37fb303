/** Kubernetes objects of an input, and what several kinds of them share. */
import { entriesOf, get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { removedAfterDecision, setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'

export const kindOfObject = (tree: Tree): string => textOf(get(tree, 'kind')) ?? ''
export const nameOf = (tree: Tree): string => textOf(get(tree, 'metadata', 'name')) ?? ''
export const namespaceOf = (tree: Tree): string => textOf(get(tree, 'metadata', 'namespace')) ?? 'default'
/** The part of `apiVersion` before the slash; empty for kinds of the core. */
export const groupOf = (tree: Tree): string => /^(.+)\//.exec(textOf(get(tree, 'apiVersion')) ?? '')?.[1] ?? ''
export const isObjectOf = (tree: Tree, group: string): boolean => groupOf(tree) === group

/** Lists as kubectl prints them are taken apart. */
export const objectsOf = (tree: Tree): readonly Tree[] =>
  /List$/.test(kindOfObject(tree)) && get(tree, 'items') !== null
    ? itemsOf(get(tree, 'items')).flatMap(objectsOf)
    : [tree]

export type Labels = ReadonlyMap<string, string>
export const labelsOf = (tree: Tree | null): Labels =>
  new Map(entriesOf(tree).map(({ key, value }) => [key, textOf(value) ?? '']))
/** Whether what has `labels` has all of `wanted`. */
export const hasLabels = (labels: Labels, wanted: Labels): boolean =>
  [...wanted].every(([key, value]) => labels.get(key) === value)

/** `set`, `add` and `remove` of a change of request fields, as Istio and Gateway API have it. */
export function fieldChanges(change: Tree | null): readonly Finding[] {
  const written = ['set', 'add'].flatMap((verb) =>
    namesOf(get(change, verb)).map(({ name, place }) => ({ place, changed: setAfterDecision(name) })),
  )
  const removed = itemsOf(get(change, 'remove')).map((place) => ({
    place,
    changed: removedAfterDecision(textOf(place) ?? ''),
  }))
  return [...written, ...removed].flatMap(({ place, changed }) => (changed === null ? [] : [at(place)(...changed)]))
}

function namesOf(list: Tree | null): readonly { readonly name: string; readonly place: Tree }[] {
  if (list?.kind === 'map') return list.entries.map(({ key, value }) => ({ name: key, place: value }))
  return itemsOf(list).map((item) => ({ name: textOf(get(item, 'name')) ?? '', place: item }))
}
