/**
 * The source of a sign-in: a browser in which this person signed in before, known by a cookie, or else an address. A person who
 * guesses a password elsewhere uses up the tries of strangers, not those of the person's own devices.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type MasterKeys, open, seal } from '../../shared/base/encryption.ts'
import { mountOf } from '../oauth/paths.ts'
import type { ClientOf } from './limit-address.ts'

const COOKIE = 'portcullis_device'
const PURPOSE = 'device'
const KEPT_SECONDS = 180 * 86_400

export type Source = {
  readonly address: string
  /** The id of the device when this person signed in on it before; else null. */
  deviceOf(user: string): string | null
}
export type Devices = {
  source(req: IncomingMessage): Source
  /** Marks the browser as one of this person's devices. */
  remember(res: ServerResponse, user: string): void
}

export function createDevices(deps: {
  readonly issuer: string
  readonly masterKeys: MasterKeys
  readonly clientOf: ClientOf
}): Devices {
  const { issuer, masterKeys, clientOf } = deps
  const attributes = [
    `Path=${mountOf(issuer)}/`,
    `Max-Age=${KEPT_SECONDS}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(issuer.startsWith('https:') ? ['Secure'] : []),
  ].join('; ')
  return {
    source: (req) => ({
      address: clientOf(req),
      deviceOf: (user) => deviceIn(masterKeys.derive(PURPOSE), req.headers.cookie ?? '', user),
    }),
    remember(res, user) {
      const value = seal(masterKeys.derive(PURPOSE), sealedAs(user), randomUUID())
      res.appendHeader('set-cookie', `${COOKIE}=${value}; ${attributes}`)
    },
  }
}

const sealedAs = (user: string): string => `device of ${user}`

/** The id of the device in this person's cookie. A cookie that was sealed for another person cannot be opened. */
function deviceIn(keys: readonly Buffer[], cookies: string, user: string): string | null {
  // The browser may send several such cookies: for other paths, or of other people.
  for (const pair of cookies.split(/; */)) {
    if (!pair.startsWith(`${COOKIE}=`)) continue
    try {
      return open(keys, sealedAs(user), pair.slice(COOKIE.length + 1))
    } catch {
      // The next cookie may belong to this person.
    }
  }
  return null
}
