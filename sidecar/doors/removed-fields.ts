/** Tells which client fields an HTTP gateway removes after its question, if it runs with the configuration that we print. */
import { exactNames, OF_TRAEFIK, prefixes } from '../http/cleared.ts'
import { answerFields, DOOR_FIELDS, type HttpProfile } from '../http/door-fields.ts'
import type { HeaderNames } from '../http/fields.ts'
import { isPlainName } from '../http/folding.ts'
import { CREDENTIAL_FIELDS, OWN_FIELDS } from '../http/stripped-fields.ts'

/** True for a lower-case name of a field that the gateway removes. */
export type Removes = (name: string) => boolean

/** The result takes the header rules of the route file in force. */
export function createRemoval(profile: HttpProfile): (headers: HeaderNames) => Removes {
  let current: { readonly headers: HeaderNames; readonly removes: Removes } | null = null
  return (headers) => {
    if (current?.headers !== headers) current = { headers, removes: removesOf(profile, headers) }
    return current.removes
  }
}

function removesOf(profile: HttpProfile, headers: HeaderNames): Removes {
  // Identity fields do not count as removed: a configuration printed before the field was named keeps it, and no honest client sends one.
  const identity = new Set(headers.identity?.map(({ name }) => name))
  const written = new Set([...DOOR_FIELDS[profile].ofGateway, ...answerFields(), ...CREDENTIAL_FIELDS])
  // Caddy removes fields before it asks, and nginx removes odd names: names still in the question will be forwarded.
  const exact = new Set(profile === 'caddy' ? [] : exactNames(headers))
  const starts = profile === 'traefik' ? prefixes(headers).filter((start) => !OF_TRAEFIK.includes(start)) : []
  return (name) => {
    if (identity.has(name)) return false
    if (written.has(name) || exact.has(name)) return true
    if (profile !== 'traefik' || OWN_FIELDS.includes(name)) return false
    return !isPlainName(name) || starts.some((start) => name.startsWith(start))
  }
}
