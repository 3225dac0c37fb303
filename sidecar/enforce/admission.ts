/** Limits open exchanges: each takes a place for its client on arrival, then places for its route and subject when they are known. */
import { clientOf } from '../../pdp/shared/base/addresses.ts'
import { serviceOf } from '../http/upstream-entry.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { Route } from '../routes/route.ts'
import { type Places, Stay, type Want } from './places.ts'
import type { Turns, Waiting } from './turns.ts'

/** The subject of the token, for limits on each subject. */
export type AdmittedSubject = { readonly issuer: string; readonly subject: string }
export type AdmittedRoute = Pick<Route, 'id' | 'upstream'>
export type Admission = {
  /**
   * Takes one of the client's places. Null: at once. `arrive` and `enter` throw or reject with RequestError if none becomes free in time.
   */
  arrive(): Promise<void> | null
  /** Takes a place of the route, the service, the subject and the total. `subject`: null without a token. */
  enter(route: AdmittedRoute, subject: AdmittedSubject | null): Promise<void> | null
  /** Waits until the client may ask the PDP. Null: it may ask at once. Throws or rejects with RequestError after too long a wait. */
  turn(): Promise<void> | null
  /** Ends the question to the PDP for which `turn` waited. Must be called whether the PDP answered or not. */
  answered(): void
}
/** `leave` releases all places and ends every wait. */
export type Admitted = Admission & { leave(): void }

/** Limits nothing: for a request that is only evaluated and never forwarded. */
export const NO_ADMISSION: Admission = {
  arrive: () => null,
  enter: () => null,
  turn: () => null,
  answered: () => undefined,
}

/** Counts WebSockets apart from requests: a WebSocket stays open for hours and would keep a request's place. */
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
  /** How many requests to services may be open in all. */
  readonly requestsMax: number
  /** How many requests may be open to one service, so that a silent service leaves places for others; null: there is only one service. */
  readonly serviceRequestsMax: number | null
}

class ExchangeAdmission implements Admitted {
  readonly #stay: Stay
  readonly #turns: Turns
  readonly #exchange: Exchange
  /** The present wait for permission to ask the PDP; null: the exchange does not wait for it. */
  #waiting: Waiting | null = null
  /** The part of the limit `waitingMs` that is used up: all waits of one exchange together may take `waitingMs`. */
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
    // The narrowest limit comes first: an exchange that must wait for its own subject then takes no position among waiters of wider limits.
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

/** The admission, and whether its places were given: shadow mode keeps these bounds, too. */
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
    /** True when the exchange has asked for its places and has not got them yet. */
    isFull: () => places === 'asked',
    enterOnce: async (...of: Parameters<typeof enter>) => (places === 'held' ? undefined : enter(...of)),
  }
}

const named = (upgrade: boolean, name: string): string => (upgrade ? `websocket ${name}` : name)
