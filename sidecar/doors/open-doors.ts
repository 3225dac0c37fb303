/** Opens all doors of a route file, or none of them. */
import type { DoorKeys } from '../config/certificates.ts'
import { isHttpProfile } from '../http/door-fields.ts'
import type { DoorEntry } from '../route-file/doors.ts'
import { createKnowsCaller } from './caller.ts'
import { type Door, type DoorDeps, openExtAuthz } from './ext-authz.ts'
import { openForwardAuth } from './forward-auth.ts'

/** Opens the doors. `keys`: one per entry, in the same order. Throws StartError when a door must not or cannot open. */
export async function openDoors(
  entries: readonly DoorEntry[],
  keys: readonly DoorKeys[],
  { enter, limits, log }: Pick<DoorDeps, 'enter' | 'limits' | 'log'>,
): Promise<readonly Door[]> {
  const doors: Door[] = []
  try {
    for (const [at, entry] of entries.entries()) {
      const own = { tls: keys[at]?.tls ?? null }
      const doorDeps = { enter, limits, log, keys: own, knowsCaller: createKnowsCaller(entry, keys[at]) }
      const { profile } = entry
      doors.push(
        isHttpProfile(profile)
          ? await openForwardAuth({ ...entry, profile }, doorDeps)
          : await openExtAuthz({ ...entry, profile }, doorDeps),
      )
    }
    return doors
  } catch (err) {
    await Promise.all(doors.map((door) => door.close()))
    throw err
  }
}
