/** Which fields of a client a gateway that asks over HTTP takes away after the question, with the configuration that we print. */
import { exactNames, OF_TRAEFIK, prefixes } from '../http/cleared.ts'
import { answerFields, DOOR_FIELDS, type HttpProfile } from '../http/door-fields.ts'
import type { HeaderNames } from '../http/fields.ts'
import { isPlainName } from '../http/folding.ts'
import { CREDENTIAL_FIELDS, OWN_FIELDS } from '../http/stripped-fields.ts'

/** Takes names in lower case. */
export type Removes = (name: string) => boolean

/** The result takes the names of the route file that is in force. */
export function createRemoval(profile: HttpProfile): (headers: HeaderNames) => Removes {
  let current: { readonly headers: HeaderNames; readonly removes: Removes } | null = null
  return (headers) => {
    if (current?.headers !== headers) current = { headers, removes: removesOf(profile, headers) }
    return current.removes
  }
}

function removesOf(profile: HttpProfile, headers: HeaderNames): Removes {
  // No honest client sends one, and a configuration that was printed before they were named lets them stay.
  const identity = new Set(headers.identity?.map(({ name }) => name))
  const written = new Set([...DOOR_FIELDS[profile].ofGateway, ...answerFields(), ...CREDENTIAL_FIELDS])
  // Caddy has removed what it can before it asks, and nginx all odd names: what is still there stays there.
  const exact = new Set(profile === 'caddy' ? [] : exactNames(headers))
  const starts = profile === 'traefik' ? prefixes(headers).filter((start) => !OF_TRAEFIK.includes(start)) : []
  return (name) => {
    if (identity.has(name)) return false
    if (written.has(name) || exact.has(name)) return true
    if (profile !== 'traefik' || OWN_FIELDS.includes(name)) return false
    return !isPlainName(name) || starts.some((start) => name.startsWith(start))
  }
}
