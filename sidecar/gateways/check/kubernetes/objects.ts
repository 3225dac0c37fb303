/** Kubernetes objects of an input, and what several kinds of them share. */
import { IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import { get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'

export const kindOfObject = (tree: Tree): string => textOf(get(tree, 'kind')) ?? ''
export const nameOf = (tree: Tree): string => textOf(get(tree, 'metadata', 'name')) ?? ''
export const namespaceOf = (tree: Tree): string => textOf(get(tree, 'metadata', 'namespace')) ?? 'default'
export const isObjectOf = (tree: Tree, group: string): boolean =>
  (textOf(get(tree, 'apiVersion')) ?? '').startsWith(`${group}/`)

/** Lists as kubectl prints them are taken apart. */
export const objectsOf = (tree: Tree): readonly Tree[] =>
  /List$/.test(kindOfObject(tree)) && get(tree, 'items') !== null
    ? itemsOf(get(tree, 'items')).flatMap(objectsOf)
    : [tree]

/** `set` and `add` of a change of request fields, as Istio and Gateway API have it. */
export function identityChanges(change: Tree | null): readonly Finding[] {
  return ['set', 'add'].flatMap((verb) =>
    namesOf(get(change, verb)).flatMap(({ name, place }) =>
      IDENTITY_FIELDS.includes(name.toLowerCase())
        ? [at(place)('forgeable', `${name} is set after the decision`, 'leave identity fields to the door')]
        : [],
    ),
  )
}

function namesOf(list: Tree | null): readonly { readonly name: string; readonly place: Tree }[] {
  if (list?.kind === 'map') return list.entries.map(({ key, value }) => ({ name: key, place: value }))
  return itemsOf(list).map((item) => ({ name: textOf(get(item, 'name')) ?? '', place: item }))
}
