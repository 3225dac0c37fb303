/** Puts the sidecars into their list of containers, and restores those that another admission webhook has changed. */

import { equalJson, type JsonObject, pointer } from './json.ts'
import type { PatchOperation } from './patch.ts'
import type { Container, ContainerList, Pod } from './pod.ts'
import { ADJUSTABLE, type Sidecar } from './sidecar-container.ts'

/** `first`: no container may start before a sidecar, since it could take its port. Else those that others put in front stay there. */
export function placeSidecars(
  pod: Pod,
  { sidecars, list, first }: { sidecars: readonly Sidecar[]; list: ContainerList; first: boolean },
): {
  readonly operations: readonly PatchOperation[]
  /** Sentences for the operator about the changes that another webhook made to a sidecar. */
  readonly warnings: readonly string[]
} {
  const there = pod.containers.filter((container) => container.list === list)
  const placed = sidecars.map((sidecar) => {
    const existing = there.find(({ name }) => name === sidecar.name) ?? null
    const differing = existing === null ? [] : differences(existing.raw, sidecar.container)
    return { sidecar, existing, differing, container: restored(sidecar.container, existing) }
  })
  const warnings = placed
    .filter(({ differing }) => differing.length > 0)
    .map(
      ({ sidecar, differing }) =>
        `another webhook changed ${differing.join(', ')} of ${sidecar.name}; the injector restored it`,
    )
  const misplaced = first && sidecars.some(({ name }, at) => there[at]?.name !== name)
  if (misplaced) return { operations: moveToFront(pod, placed, list), warnings }
  const replaced = placed.flatMap(({ existing, differing, container: value }) =>
    existing === null || differing.length === 0
      ? []
      : [{ op: 'replace', path: pointer('spec', list, existing.index), value } as const],
  )
  const missing = placed.filter(({ existing }) => existing === null).map(({ container }) => container)
  return { operations: [...replaced, ...append(['spec', list], missing, pod.missing.has(list))], warnings }
}

function moveToFront(
  pod: Pod,
  placed: readonly { readonly existing: Container | null; readonly container: JsonObject }[],
  list: ContainerList,
): readonly PatchOperation[] {
  const containers = placed.map(({ container }) => container)
  if (pod.missing.has(list)) return append(['spec', list], containers, true)
  const indexes = placed.flatMap(({ existing }) => (existing === null ? [] : [existing.index]))
  return [
    // The containers are removed from the last to the first, so that the other indexes stay valid.
    ...indexes.toSorted((a, b) => b - a).map((at) => ({ op: 'remove', path: pointer('spec', list, at) }) as const),
    ...containers.map((value, at) => ({ op: 'add', path: pointer('spec', list, at), value }) as const),
  ]
}

export function append(
  place: readonly string[],
  items: readonly JsonObject[],
  absent: boolean,
): readonly PatchOperation[] {
  if (items.length === 0) return []
  if (absent) return [{ op: 'add', path: pointer(...place), value: items }]
  return items.map((value) => ({ op: 'add', path: pointer(...place, '-'), value }))
}

/** Names of the members that differ from the wanted ones. */
export function differences(actual: JsonObject, wanted: JsonObject): readonly string[] {
  const names = new Set([...Object.keys(actual), ...Object.keys(wanted)])
  return [...names].filter((name) => {
    const value = wanted[name]
    if (ADJUSTABLE.includes(name)) return false
    return value === undefined ? actual[name] !== undefined : !equalJson(actual[name], value)
  })
}

const restored = (wanted: JsonObject, existing: Container | null): JsonObject => ({
  ...wanted,
  ...Object.fromEntries(Object.entries(existing?.raw ?? {}).filter(([name]) => ADJUSTABLE.includes(name))),
})
