/** The limits of the identity service, which a bench meets before its machine does. */
import { setTimeout as delay } from 'node:timers/promises'

const REFUSED_TRIES_MAX = 15
const REFUSED_WAIT_MS = 5_000

/** What protects codes lets one person begin so many sign-ins a minute: the next ones wait for the next minute. */
export async function patiently(make: () => Promise<string>): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await make()
    } catch (err) {
      if (tries === REFUSED_TRIES_MAX || !/429|temporarily_unavailable/.test(String(err))) throw err
      await delay(REFUSED_WAIT_MS)
    }
  }
}
