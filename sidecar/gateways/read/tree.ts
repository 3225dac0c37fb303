/** A configuration as maps, lists and scalars that know their places; the form that YAML, JSON and TOML are read into. */
import type { Place } from './source.ts'

export type Scalar = string | number | boolean | null
export type Entry = Place & { readonly key: string; readonly value: Tree }
export type Tree = Place &
  (
    | { readonly kind: 'map'; readonly entries: readonly Entry[] }
    | { readonly kind: 'list'; readonly items: readonly Tree[] }
    | { readonly kind: 'scalar'; readonly value: Scalar }
  )

/** Envoy accepts `merge_slashes` and `mergeSlashes`, Traefik any case. */
export const folded = (key: string): string => key.replaceAll('_', '').toLowerCase()

/** The value below the keys; null for a missing value, and for null itself. */
export function get(tree: Tree | null, ...keys: readonly string[]): Tree | null {
  let found: Tree | null = tree
  for (const key of keys) {
    if (found?.kind !== 'map') return null
    const name = folded(key)
    found = found.entries.find((entry) => folded(entry.key) === name)?.value ?? null
  }
  return found === null || (found.kind === 'scalar' && found.value === null) ? null : found
}

export const entriesOf = (tree: Tree | null): readonly Entry[] => (tree?.kind === 'map' ? tree.entries : [])

/** The items of a list; a single value counts as a list of one. */
export const itemsOf = (tree: Tree | null): readonly Tree[] =>
  tree === null ? [] : tree.kind === 'list' ? tree.items : [tree]

export const textOf = (tree: Tree | null): string | null =>
  tree?.kind === 'scalar' && tree.value !== null ? String(tree.value) : null

export const textsOf = (tree: Tree | null): readonly string[] =>
  itemsOf(tree)
    .map(textOf)
    .filter((text) => text !== null)

/** Only the value itself: `"false"` is true to some readers. */
export const isFalse = (tree: Tree | null): boolean => tree?.kind === 'scalar' && tree.value === false
export const isTrue = (tree: Tree | null): boolean => tree?.kind === 'scalar' && tree.value === true
/** Set, and to something else than false. */
export const isOn = (tree: Tree | null): tree is Tree => tree !== null && !isFalse(tree)

/** The tree and everything below it. */
export function* walk(tree: Tree): Generator<Tree> {
  yield tree
  if (tree.kind === 'map') for (const { value } of tree.entries) yield* walk(value)
  if (tree.kind === 'list') for (const item of tree.items) yield* walk(item)
}
