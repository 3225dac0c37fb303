/** Gives each exchange its places among all that are under way: of its client at once, of its route and subject when they are known. */
import { clientOf } from '../../pdp/process/addresses.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import { type Places, Stay, type Want } from './places.ts'

/** Whose token it is. */
export type AdmittedSubject = { readonly issuer: string; readonly subject: string }
export type Admission = {
  /** Null: at once. Throws RequestError, or rejects with it, when there is no place in time; so does `enter`. */
  arrive(): Promise<void> | null
  /** `subject`: null on a public route. */
  enter(route: string, subject: AdmittedSubject | null): Promise<void> | null
}
/** `leave` gives back all places; nothing is waited for after it. */
export type Admitted = Admission & { leave(): void }

/** Of a request that is only imagined. */
export const NO_ADMISSION: Admission = { arrive: () => null, enter: () => null }

/** An open WebSocket has no part in requests: it would keep its place for hours. */
export function admit(
  places: Places,
  {
    address,
    upgrade,
    limits,
    requestsMax,
  }: {
    readonly address: string
    readonly upgrade: boolean
    readonly limits: SidecarLimits
    /** Of the upstream. */
    readonly requestsMax: number
  },
): Admitted {
  return new ExchangeAdmission(places, { client: clientOf(address), upgrade, limits, requestsMax })
}

type Exchange = {
  readonly client: string
  readonly upgrade: boolean
  readonly limits: SidecarLimits
  readonly requestsMax: number
}

class ExchangeAdmission implements Admitted {
  readonly #stay: Stay
  readonly #exchange: Exchange

  constructor(places: Places, exchange: Exchange) {
    this.#stay = new Stay(places)
    this.#exchange = exchange
  }

  arrive(): Promise<void> | null {
    const { client, upgrade, limits } = this.#exchange
    const max = upgrade ? limits.clientWebsocketsMax : limits.clientRequestsMax
    return this.#stay.enter([{ bound: 'client', name: named(upgrade, client), max }], limits)
  }

  enter(route: string, subject: AdmittedSubject | null): Promise<void> | null {
    const { upgrade, limits, requestsMax } = this.#exchange
    const wants: Want[] = []
    // The narrowest first: whoever has taken all of its own places has no turn where others wait.
    if (subject !== null) {
      const name = named(upgrade, `${subject.issuer} ${subject.subject}`)
      wants.push({ bound: 'subject', name, max: upgrade ? limits.clientWebsocketsMax : limits.subjectRequestsMax })
    }
    if (!upgrade) wants.push({ bound: 'route', name: route, max: limits.routeRequestsMax })
    wants.push({ bound: 'all', name: named(upgrade, ''), max: upgrade ? limits.websocketsMax : requestsMax })
    return this.#stay.enter(wants, limits)
  }

  leave(): void {
    this.#stay.leave()
  }
}

const named = (upgrade: boolean, name: string): string => (upgrade ? `websocket ${name}` : name)
