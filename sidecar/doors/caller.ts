/** Authenticates the gateway that asks a door: no one else may describe requests to it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { formatAddress } from '../../pdp/shared/process/listen.ts'
import type { DoorKeys } from '../config/certificates.ts'
import type { DoorEntry } from '../route-file/doors.ts'

/** True if the values of the gateway's field are exactly the secret, once. A door without a secret relies on the connection instead. */
export type KnowsCaller = (values: readonly string[]) => boolean

const digest = (text: string): Buffer => createHash('sha256').update(text, 'latin1').digest()

/** Throws StartError for a door with no means to authenticate its gateway. */
export function createKnowsCaller({ listen, profile }: DoorEntry, keys: DoorKeys | undefined): KnowsCaller {
  if (keys === undefined) throw new StartError(`The ${profile} door has no keys`)
  const { secret, tls } = keys
  if (secret === null) {
    if ('path' in listen || (tls !== null && tls.ca !== null)) return () => true
    throw new StartError(
      `The ${profile} door does not open on ${formatAddress(listen)}: nothing authenticates the gateway (tls with client_ca_file, secret_file or a unix socket)`,
    )
  }
  const wanted = digest(secret)
  // The digests have equal lengths, so the comparison does not reveal the secret's length.
  return (values) => values.length === 1 && timingSafeEqual(digest(values[0] ?? ''), wanted)
}
