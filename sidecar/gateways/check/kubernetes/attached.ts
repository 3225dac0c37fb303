/** What policies of the Gateway API are attached to. */
import { entriesOf, get, itemsOf, type Tree, textOf } from '../../read/tree.ts'
import { hasLabels, kindOfObject, labelsOf, nameOf, namespaceOf } from './objects.ts'

/** An object, which may not be in the files. `object`: where it is. */
export type Target = {
  readonly kind: string
  readonly name: string
  readonly namespace: string
  readonly object: Tree | null
}

export const targetOf = (object: Tree): Target => ({
  kind: kindOfObject(object),
  name: nameOf(object),
  namespace: namespaceOf(object),
  object,
})

const refsOf = (policy: Tree): readonly Tree[] =>
  ['targetRefs', 'targetRef'].flatMap((key) => itemsOf(get(policy, 'spec', key)))

/** No part of a target, such as one listener or one rule. */
export const isWhole = (policy: Tree): boolean => refsOf(policy).every((ref) => get(ref, 'sectionName') === null)

/** It is merged into the policy above it, and takes nobody's place. */
export const isIdle = (policy: Tree): boolean => get(policy, 'spec', 'mergeType') !== null

/** `sure`: expressions, which are not read here, count as no match. */
export function isAbout(policy: Tree, target: Target, { sure }: { readonly sure: boolean }): boolean {
  if (namespaceOf(policy) !== target.namespace) return false
  const named = refsOf(policy).some(
    (ref) => textOf(get(ref, 'kind')) === target.kind && textOf(get(ref, 'name')) === target.name,
  )
  const selected = itemsOf(get(policy, 'spec', 'targetSelectors')).some((selector) => {
    if (textOf(get(selector, 'kind')) !== target.kind) return false
    if (itemsOf(get(selector, 'matchExpressions')).length > 0) return !sure
    if (target.object === null) return !sure
    return hasLabels(labelsOf(get(target.object, 'metadata', 'labels')), labelsOf(get(selector, 'matchLabels')))
  })
  return named || selected
}

/** Where requests for the route come in; each of them has to ask. */
export const parentsOf = (route: Tree, all: readonly Tree[]): readonly Target[] =>
  itemsOf(get(route, 'spec', 'parentRefs')).map((ref) => {
    const wanted = {
      kind: textOf(get(ref, 'kind')) ?? 'Gateway',
      name: textOf(get(ref, 'name')) ?? '',
      namespace: textOf(get(ref, 'namespace')) ?? namespaceOf(route),
    }
    const object = all.find(
      (one) =>
        kindOfObject(one) === wanted.kind &&
        nameOf(one) === wanted.name &&
        namespaceOf(one) === wanted.namespace &&
        entriesOf(get(one, 'spec', 'selector')).length === 0,
    )
    return { ...wanted, object: object ?? null }
  })
