/** Puts the gates into their list of containers, and back as they must be where another admission webhook changed them. */
import { ADJUSTABLE, type Gate } from './gate.ts'
import { equalJson, type JsonObject, pointer } from './json.ts'
import type { PatchOperation } from './patch.ts'
import type { Container, ContainerList, Pod } from './pod.ts'

export type Placement = {
  readonly operations: readonly PatchOperation[]
  /** What was changed in a gate, for the operator. */
  readonly warnings: readonly string[]
}

/** `first`: nothing may start before a gate, since it could take the gate's port. Else what others put in front stays there. */
export function placeGates(
  pod: Pod,
  { gates, list, first }: { gates: readonly Gate[]; list: ContainerList; first: boolean },
): Placement {
  const there = pod.containers.filter((container) => container.list === list)
  const placed = gates.map((gate) => {
    const standing = there.find(({ name }) => name === gate.name) ?? null
    const differing = standing === null ? [] : differences(standing.raw, gate.container)
    return { gate, standing, differing, container: restored(gate.container, standing) }
  })
  const warnings = placed
    .filter(({ differing }) => differing.length > 0)
    .map(({ gate, differing }) => `something changed ${differing.join(', ')} of ${gate.name}, which was put back`)
  const misplaced = first && gates.some(({ name }, at) => there[at]?.name !== name)
  if (misplaced) return { operations: moveToFront(pod, placed, list), warnings }
  const replaced = placed.flatMap(({ standing, differing, container: value }) =>
    standing === null || differing.length === 0
      ? []
      : [{ op: 'replace', path: pointer('spec', list, standing.index), value } as const],
  )
  const missing = placed.filter(({ standing }) => standing === null).map(({ container }) => container)
  return { operations: [...replaced, ...append(['spec', list], missing, pod.missing.has(list))], warnings }
}

type Placed = { readonly standing: Container | null; readonly container: JsonObject }

function moveToFront(pod: Pod, placed: readonly Placed[], list: ContainerList): readonly PatchOperation[] {
  const containers = placed.map(({ container }) => container)
  if (pod.missing.has(list)) return append(['spec', list], containers, true)
  const indexes = placed.flatMap(({ standing }) => (standing === null ? [] : [standing.index]))
  return [
    // From the last, so that the others stay where they are.
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

/** Names of the members that are not as they must be. */
export function differences(actual: JsonObject, wanted: JsonObject): readonly string[] {
  const names = new Set([...Object.keys(actual), ...Object.keys(wanted)])
  return [...names].filter((name) => {
    const value = wanted[name]
    if (ADJUSTABLE.includes(name)) return false
    return value === undefined ? actual[name] !== undefined : !equalJson(actual[name], value)
  })
}

const restored = (wanted: JsonObject, standing: Container | null): JsonObject => ({
  ...wanted,
  ...Object.fromEntries(Object.entries(standing?.raw ?? {}).filter(([name]) => ADJUSTABLE.includes(name))),
})
