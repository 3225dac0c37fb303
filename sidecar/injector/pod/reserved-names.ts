/** Finds containers and volumes that have the injector's names but are not its own. Image and list decide, never a label. */

import { type Denial, deny } from './injection.ts'
import { equalJson, type JsonObject, listAt, objectAt, textAt } from './json.ts'
import type { ContainerList, Pod, Volume } from './pod.ts'
import { RESERVED, type Sidecar, TOKEN_AUDIENCE } from './sidecar-container.ts'

/**
 * Null if every container with a reserved name has the sidecar's image and stands in the right list, and every volume with a reserved name
 * equals ours. place-sidecars.ts restores other members.
 */
export function findStrangers(
  pod: Pod,
  own: { sidecars: readonly Sidecar[]; volumes: readonly JsonObject[]; list: ContainerList },
): Denial | null {
  for (const container of pod.containers.filter(({ name }) => name.startsWith(RESERVED))) {
    const sidecar = own.sidecars.find(({ name }) => name === container.name)
    if (sidecar === undefined || container.list !== own.list || container.raw.image !== sidecar.container.image)
      return deny(
        'name_taken',
        `container ${container.name} has a reserved name and is not the sidecar that the Pod's annotations ask for; rename or remove it`,
      )
  }
  const reader = pod.containers.find(
    ({ name, mounts }) => !name.startsWith(RESERVED) && mounts.some((mount) => mount.startsWith(RESERVED)),
  )
  if (reader !== undefined)
    return deny('name_taken', `container ${reader.name} mounts a volume that belongs to the sidecar; remove this mount`)
  const shared = pod.volumes.find((volume) => !volume.name.startsWith(RESERVED) && asksPdp(volume))
  if (shared !== undefined)
    return deny(
      'token_taken',
      `volume ${shared.name} has a token with the audience ${TOKEN_AUDIENCE}: ${ONLY_SIDECAR}; remove the volume`,
    )
  for (const { name, raw } of pod.volumes) {
    const volume = own.volumes.find((candidate) => candidate.name === name)
    if (name.startsWith(RESERVED) && (volume === undefined || !equalJson(raw, volume)))
      return deny(
        'name_taken',
        `volume ${name} has a reserved name and is not the sidecar's volume; rename or remove it`,
      )
  }
  return null
}

export const ONLY_SIDECAR = 'with it the app could ask the PDP as the sidecar does'

/** True for a projected token that the PDP accepts as a sidecar's. Throws ShapeError. */
export function asksPdp({ name, raw }: Volume): boolean {
  const place = `volume ${name}`
  const sources = listAt(objectAt(raw.projected, place).sources, place)
  return sources.some((source) => {
    const token = objectAt(objectAt(source, place).serviceAccountToken, place)
    return textAt(token.audience, place) === TOKEN_AUDIENCE
  })
}

export function isPresent(pod: Pod, { name }: Sidecar): boolean {
  return pod.containers.some((container) => container.name === name)
}
