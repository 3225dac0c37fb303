/** Bounds what can be started before anybody has signed in: by address, and for all unknown addresses together. */
import { createAttempts } from '../../shared/base/attempts.ts'
import type { KnownAddresses } from './known-addresses.ts'

/** The starts that one address, or one person who is signed in, may make in a minute; and all unknown addresses together. */
const ONE_MAX = 600
const STRANGERS_MAX = 6_000
/** The starts that the servers of one address may make in a minute for all the people whom they serve. */
const SERVERS_MAX = 6_000
export const STARTS_WINDOW_MS = 60_000
const KEYS_MAX = 50_000

/** Counts requests that leave a record in the database before anybody has signed in. */
export type Starts = {
  /** False: it has to wait. `person`: who is signed in; null when nobody is. */
  take(who: { readonly address: string; readonly person: string | null }): boolean
  /** It left no record. */
  giveBack(who: { readonly address: string; readonly person: string | null }): void
  /** It was a client's that has authenticated: such a server sends the requests of many people. */
  isServer(who: { readonly address: string; readonly person: string | null }): void
}

/** Per process. */
export function createStarts(deps: {
  readonly clock: () => number
  readonly known: Pick<KnownAddresses, 'has'>
}): Starts {
  const window = { clock: deps.clock, windowMs: STARTS_WINDOW_MS }
  const ones = createAttempts({ ...window, triesMax: ONE_MAX, keysMax: KEYS_MAX })
  const servers = createAttempts({ ...window, triesMax: SERVERS_MAX, keysMax: KEYS_MAX })
  const strangers = createAttempts({ ...window, triesMax: STRANGERS_MAX, keysMax: 1 })
  const keyOf = ({ address, person }: Parameters<Starts['take']>[0]): string =>
    person === null ? `address ${address}` : `person ${person}`
  const isStranger = ({ address, person }: Parameters<Starts['take']>[0]): boolean =>
    person === null && !deps.known.has(address)

  const giveBackOne = (who: Parameters<Starts['take']>[0]): void => {
    ones.giveBack(keyOf(who))
    if (isStranger(who)) strangers.giveBack('')
  }

  return {
    take(who) {
      if (!servers.take(who.address)) return false
      if (ones.take(keyOf(who))) {
        if (!isStranger(who) || strangers.take('')) return true
        ones.giveBack(keyOf(who))
      }
      servers.giveBack(who.address)
      return false
    },
    giveBack(who) {
      servers.giveBack(who.address)
      giveBackOne(who)
    },
    isServer: giveBackOne,
  }
}
