/**
 * Where a sign-in comes from: a browser in which this person signed in before, which a cookie says, or an address. Whoever
 * guesses at somebody's password elsewhere uses up the tries of strangers, not those of the person's own devices.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import { open, seal } from '../../process/encryption.ts'
import { mountOf } from '../oauth/paths.ts'

const COOKIE = 'portcullis_device'
const KEPT_SECONDS = 180 * 86_400

export type Source = {
  readonly address: string
  /** The id of the device when this person signed in on it before; else null. */
  deviceOf(user: string): string | null
}
export type Devices = {
  source(req: IncomingMessage): Source
  /** From now on the browser is a device of this person. */
  remember(res: ServerResponse, user: string): void
}

export function createDevices({ issuer, key }: { readonly issuer: string; readonly key: Buffer }): Devices {
  const attributes = [
    `Path=${mountOf(issuer)}/oauth`,
    `Max-Age=${KEPT_SECONDS}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(issuer.startsWith('https:') ? ['Secure'] : []),
  ].join('; ')
  return {
    source: (req) => ({
      address: addressOf(req),
      deviceOf: (user) => deviceIn(key, req.headers.cookie ?? '', user),
    }),
    remember(res, user) {
      const value = seal(key, sealedAs(user), randomUUID())
      res.appendHeader('set-cookie', `${COOKIE}=${value}; ${attributes}`)
    },
  }
}

const sealedAs = (user: string): string => `device of ${user}`

/** What was sealed for another person does not open. */
function deviceIn(key: Buffer, cookies: string, user: string): string | null {
  const pair = cookies.split(';').find((text) => text.trim().startsWith(`${COOKIE}=`))
  if (pair === undefined) return null
  try {
    return open(key, sealedAs(user), pair.trim().slice(COOKIE.length + 1))
  } catch {
    return null
  }
}

/** One network of IPv6 counts as one address: whoever has any has all of a /64. */
export function addressOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  if (isIPv4(address) || !isIPv6(address)) return address
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}
