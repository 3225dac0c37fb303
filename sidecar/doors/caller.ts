/** Authenticates the gateway that asks: only the gateway may describe a request to a door. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { formatAddress } from '../../pdp/shared/process/listen.ts'
import type { DoorKeys } from '../config/certificates.ts'
import type { DoorEntry } from '../route-file/doors.ts'

/** True when the caller's field is the secret, exactly once. Without a secret, the connection authenticates the gateway. */
export type KnowsCaller = (values: readonly string[]) => boolean

const digest = (text: string): Buffer => createHash('sha256').update(text, 'latin1').digest()

/** Throws StartError for a door whose gateway nothing would authenticate. */
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
  // Digests have one length, so the comparison reveals nothing about the secret.
  return (values) => values.length === 1 && timingSafeEqual(digest(values[0] ?? ''), wanted)
}
