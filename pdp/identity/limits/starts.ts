/** Limits what can be started before a sign-in: for each address, and for all unknown addresses together. */
import { createAttempts } from '../../shared/base/attempts.ts'
import type { KnownAddresses } from './known-addresses.ts'

/** How many starts a minute one address or one signed-in person may make. STRANGERS_MAX: all unknown addresses together. */
const ONE_MAX = 600
const STRANGERS_MAX = 6_000
/** How many starts a minute the servers at one address may make, for all the people whom they serve. */
const SERVERS_MAX = 6_000
export const STARTS_WINDOW_MS = 60_000
const KEYS_MAX = 50_000

/** Counts requests that store a record before any sign-in. */
export type Starts = {
  /** Counts a start. False: the limit is reached. `person`: the signed-in person, or null. */
  take(who: { readonly address: string; readonly person: string | null }): boolean
  /** Undoes `take`, because the request stored no record. */
  giveBack(who: { readonly address: string; readonly person: string | null }): void
  /** Tells that the request came from an authenticated client's server, which sends requests of many people: SERVERS_MAX counts for it. */
  isServer(who: { readonly address: string; readonly person: string | null }): void
}

/** Counts per process. */
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
