/** Limits open exchanges: a place for the client on arrival, and places for route and subject when they are known. */
import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { serviceOf } from '../http/upstream-entry.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { Route } from '../routes/route.ts'
import { type Places, Stay, type Want } from './places.ts'
import type { Turns, Waiting } from './turns.ts'

/** The subject of the token. */
export type AdmittedSubject = { readonly issuer: string; readonly subject: string }
export type AdmittedRoute = Pick<Route, 'id' | 'upstream'>
export type Admission = {
  /** Null: no wait was needed. Throws or rejects with RequestError if no place becomes free in time; so does `enter`. */
  arrive(): Promise<void> | null
  /** `subject`: null on a public route. */
  enter(route: AdmittedRoute, subject: AdmittedSubject | null): Promise<void> | null
  /** Null: it is the client's turn to ask the PDP. Throws or rejects with RequestError when that does not come in time. */
  turn(): Promise<void> | null
  /** The turn has ended, with an answer or without. */
  answered(): void
}
/** `leave` releases all places and ends every wait. */
export type Admitted = Admission & { leave(): void }

/** For a request that is only evaluated, without limits. */
export const NO_ADMISSION: Admission = {
  arrive: () => null,
  enter: () => null,
  turn: () => null,
  answered: () => undefined,
}

/** An open WebSocket does not count as a request: it would hold its place for hours. */
export function admit(
  { places, turns }: { readonly places: Places; readonly turns: Turns },
  { address, ...exchange }: Omit<Exchange, 'client'> & { readonly address: string },
): Admitted {
  return new ExchangeAdmission({ places, turns }, { client: clientOf(address), ...exchange })
}

type Exchange = {
  readonly client: string
  readonly upgrade: boolean
  readonly limits: SidecarLimits
  /** How many requests to services may be open. */
  readonly requestsMax: number
  /** How many to one of several, so that one that does not answer leaves places for the others; null: there is one. */
  readonly serviceRequestsMax: number | null
}

class ExchangeAdmission implements Admitted {
  readonly #stay: Stay
  readonly #turns: Turns
  readonly #exchange: Exchange
  /** For its turn at the PDP. */
  #waiting: Waiting | null = null
  /** The part of `waitingMs` that is used up; it bounds all waits together. */
  #waitedMs = 0

  constructor({ places, turns }: { readonly places: Places; readonly turns: Turns }, exchange: Exchange) {
    this.#stay = new Stay(places, exchange.client)
    this.#turns = turns
    this.#exchange = exchange
  }

  arrive(): Promise<void> | null {
    const { client, upgrade, limits } = this.#exchange
    const max = upgrade ? limits.clientWebsocketsMax : limits.clientRequestsMax
    return this.#timed(this.#stay.enter([{ bound: 'client', name: named(upgrade, client), max }], limits))
  }

  enter(route: AdmittedRoute, subject: AdmittedSubject | null): Promise<void> | null {
    const { upgrade, limits, requestsMax, serviceRequestsMax } = this.#exchange
    const wants: Want[] = []
    // The narrowest limit first: an exchange that waits for its own client's places does not wait in line with others.
    if (subject !== null) {
      const name = named(upgrade, `${subject.issuer} ${subject.subject}`)
      wants.push({ bound: 'subject', name, max: upgrade ? limits.clientWebsocketsMax : limits.subjectRequestsMax })
    }
    if (!upgrade) wants.push({ bound: 'route', name: route.id, max: limits.routeRequestsMax })
    if (!upgrade && serviceRequestsMax !== null) {
      const name = route.upstream === null ? '' : serviceOf(route.upstream)
      wants.push({ bound: 'service', name, max: serviceRequestsMax })
    }
    wants.push({ bound: 'all', name: named(upgrade, ''), max: upgrade ? limits.websocketsMax : requestsMax })
    const { waitingMax } = limits
    return this.#timed(this.#stay.enter(wants, { waitingMax, waitingMs: this.#leftMs() }))
  }

  turn(): Promise<void> | null {
    const { client, limits } = this.#exchange
    const { decisionsMax, waitingMax } = limits
    this.#waiting = this.#turns.begin(client, { decisionsMax, waitingMax, waitingMs: this.#leftMs() })
    return this.#waiting === null ? null : this.#waiting.turn
  }

  answered(): void {
    this.#turns.end()
  }

  #leftMs(): number {
    return Math.max(0, this.#exchange.limits.waitingMs - this.#waitedMs)
  }

  #timed(wait: Promise<void> | null): Promise<void> | null {
    if (wait === null) return null
    const startedMs = performance.now()
    return wait.then(() => {
      this.#waitedMs += performance.now() - startedMs
    })
  }

  leave(): void {
    this.#waiting?.leave()
    this.#stay.leave()
  }
}

/** The same, and whether its places were given: shadow mode keeps these bounds, too. */
export function notePlaces(admission: Admission) {
  let places: 'none' | 'asked' | 'held' = 'none'
  const enter: Admission['enter'] = (route, subject) => {
    places = 'asked'
    const entering = admission.enter(route, subject) // RequestError
    if (entering === null) places = 'held'
    const hold = (): void => {
      places = 'held'
    }
    return entering?.then(hold) ?? null
  }
  return {
    arrive: () => admission.arrive(),
    turn: () => admission.turn(),
    answered: () => admission.answered(),
    enter,
    /** It asked for its places in vain. */
    isFull: () => places === 'asked',
    enterOnce: async (...of: Parameters<typeof enter>) => (places === 'held' ? undefined : enter(...of)),
  }
}

const named = (upgrade: boolean, name: string): string => (upgrade ? `websocket ${name}` : name)
