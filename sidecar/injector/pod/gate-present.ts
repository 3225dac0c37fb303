/** Whether what carries a name of ours is ours: decided by its image and place, never by a mark that anyone can set. */
import { type Gate, RESERVED } from './gate.ts'
import { type Denial, deny } from './injection.ts'
import { equalJson, type JsonObject } from './json.ts'
import type { ContainerList, Pod } from './pod.ts'

/**
 * Null when every container with a name of ours is one of our image in its list, whose other members place-gates.ts puts
 * back, and every volume with a name of ours is exactly ours.
 */
export function findStrangers(
  pod: Pod,
  own: { gates: readonly Gate[]; volumes: readonly JsonObject[]; list: ContainerList },
): Denial | null {
  for (const container of pod.containers.filter(({ name }) => name.startsWith(RESERVED))) {
    const gate = own.gates.find(({ name }) => name === container.name)
    if (gate === undefined || container.list !== own.list || container.raw.image !== gate.container.image)
      return deny(
        'name_taken',
        `container ${container.name} has a gate's name and is not the gate of this Pod's annotations`,
      )
  }
  const reader = pod.containers.find(
    ({ name, mounts }) => !name.startsWith(RESERVED) && mounts.some((mount) => mount.startsWith(RESERVED)),
  )
  if (reader !== undefined) return deny('name_taken', `container ${reader.name} mounts a volume of the gate`)
  for (const { name, raw } of pod.volumes) {
    const volume = own.volumes.find((candidate) => candidate.name === name)
    if (name.startsWith(RESERVED) && (volume === undefined || !equalJson(raw, volume)))
      return deny('name_taken', `volume ${name} has the name of one of the gate's and is another`)
  }
  return null
}

export function standsIn(pod: Pod, { name }: Gate): boolean {
  return pod.containers.some((container) => container.name === name)
}
