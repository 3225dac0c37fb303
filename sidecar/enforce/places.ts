/** Limits open exchanges for each client, subject, route and service, and in total. An exchange over a limit waits for a short time. */
import { mayTake } from '../http/share.ts'
import { RequestError } from '../request/errors.ts'

export type Bound = 'client' | 'subject' | 'route' | 'service' | 'all'
/** A request for one place of the limit `name`, which has `max` places. */
export type Want = { readonly bound: Bound; readonly name: string; readonly max: number }
export type WaitLimits = {
  /** How many exchanges may wait for one name. */
  readonly waitingMax: number
  readonly waitingMs: number
}

const MESSAGES: { readonly [bound in Bound]: string } = {
  client: 'Too many requests of this client are open',
  subject: 'Too many requests of this subject are open',
  route: 'Too many requests of this route are open',
  service: 'Too many requests to this service are open',
  all: 'Too many requests are open',
}

/** The waiting exchanges by client, next client first. No set is empty; its oldest exchange comes first. */
type Lines = Map<string, Set<Waiter>>
type Slot = {
  readonly bound: Bound
  readonly name: string
  /** The limit that the last exchange brought: a reload may change it. */
  max: number
  used: number
  /** How many places each client has; null: the limit belongs to one client or subject. */
  readonly held: Map<string, number> | null
  waitingCount: number
  /** Waiting exchanges. Clients that have no place of this limit come before clients that have some. Null: no exchange waits. */
  lines: { readonly without: Lines; readonly having: Lines } | null
}
type Waiter = {
  readonly wants: readonly Want[]
  /** The limit for which the exchange waits now. */
  slot: Slot
  readonly stay: Stay
  readonly take: () => void
  readonly giveUp: (bound: Bound) => void
}

/** How many waiting clients are tried for one free place: a bound, so that a release is cheap however many wait. */
const LOOKS_MAX = 8

/** True for a limit that clients share: no client may take most of it, however many requests it sends. */
const isShared = (bound: Bound): boolean => bound === 'route' || bound === 'service' || bound === 'all'

/** The places of the whole process: exchanges from before a reload still count. */
export class Places {
  readonly #slots: { readonly [bound in Bound]: Map<string, Slot> } = {
    client: new Map(),
    subject: new Map(),
    route: new Map(),
    service: new Map(),
    all: new Map(),
  }

  slotOf({ bound, name, max }: Want): Slot {
    const slots = this.#slots[bound]
    let slot = slots.get(name)
    if (slot === undefined) {
      slot = { bound, name, max, used: 0, held: isShared(bound) ? new Map() : null, waitingCount: 0, lines: null }
      slots.set(name, slot)
    }
    slot.max = max
    return slot
  }

  nameCount(): number {
    return Object.values(this.#slots).reduce((count, slots) => count + slots.size, 0)
  }

  forgetIfEmpty({ bound, name, used, waitingCount }: Slot): void {
    if (used === 0 && waitingCount === 0) this.#slots[bound].delete(name)
  }
}

const isFull = (slot: Slot, client: string): boolean =>
  slot.held === null ? slot.used >= slot.max : !mayTake(heldIn(slot, client), slot)

const heldIn = ({ held }: Slot, client: string): number => held?.get(client) ?? 0

/** Adds or takes a client's place. A first or last place moves the client's waiting exchanges between `without` and `having`. */
function count({
  slot,
  client,
  change,
}: {
  readonly slot: Slot
  readonly client: string
  readonly change: 1 | -1
}): void {
  slot.used += change
  if (slot.held === null) return
  const left = heldIn(slot, client) + change
  if (left > 0) slot.held.set(client, left)
  else slot.held.delete(client)
  if (slot.lines === null || left > 1) return
  const { without, having } = slot.lines
  const [from, to] = left === 0 ? [having, without] : [without, having]
  const line = from.get(client)
  if (line === undefined) return
  from.delete(client)
  to.set(client, line)
}

function linesOf(slot: Slot, client: string): Lines {
  slot.lines ??= { without: new Map(), having: new Map() }
  return heldIn(slot, client) > 0 ? slot.lines.having : slot.lines.without
}

function addTo(slot: Slot, waiter: Waiter): void {
  const { client } = waiter.stay
  const lines = linesOf(slot, client)
  const line = lines.get(client)
  if (line === undefined) lines.set(client, new Set([waiter]))
  else line.add(waiter)
  waiter.slot = slot
  slot.waitingCount += 1
}

function removeFrom(slot: Slot, waiter: Waiter): void {
  const { client } = waiter.stay
  const lines = linesOf(slot, client)
  const line = lines.get(client)
  if (line?.delete(waiter) !== true) return
  slot.waitingCount -= 1
  if (line.size === 0) lines.delete(client)
  if (slot.waitingCount === 0) slot.lines = null
}

/** The places of one exchange. */
export class Stay {
  readonly #places: Places
  readonly client: string
  readonly #held: Slot[] = []
  #waiter: Waiter | null = null
  #over = false

  constructor(places: Places, client: string) {
    this.#places = places
    this.client = client
  }

  /**
   * Takes one place of each limit, or none. Null: all were free. Throws or rejects with RequestError if one does not become free in time.
   */
  enter(wants: readonly Want[], limits: WaitLimits): Promise<void> | null {
    // The client has left while its request was prepared.
    if (this.#over) throw busy('client')
    const slots = this.#slotsOf(wants)
    const full = this.#fullOf(slots)
    if (full === null) {
      this.#occupy(slots)
      return null
    }
    const wait = this.#mayWaitIn(full, limits.waitingMax) ? this.#wait(wants, { slot: full, limits }) : null
    for (const slot of slots) this.#places.forgetIfEmpty(slot)
    if (wait === null) throw busy(full.bound)
    return wait
  }

  /** Releases all places, and ends every wait. */
  leave(): void {
    if (this.#over) return
    this.#over = true
    if (this.#waiter !== null) this.#waiter.giveUp('all')
    for (const slot of this.#held) this.#release(slot)
    this.#held.length = 0
  }

  #fullOf(slots: readonly Slot[]): Slot | null {
    for (const slot of slots) if (isFull(slot, this.client)) return slot
    return null
  }

  #slotsOf(wants: readonly Want[]): readonly Slot[] {
    return wants.map((want) => this.#places.slotOf(want))
  }

  #mayWaitIn(slot: Slot, max: number): boolean {
    const used = slot.waitingCount
    if (slot.held === null || slot.lines === null) return used < max
    return mayTake(linesOf(slot, this.client).get(this.client)?.size ?? 0, { used, max })
  }

  #occupy(slots: readonly Slot[]): void {
    for (const slot of slots) {
      count({ slot, client: this.client, change: 1 })
      this.#held.push(slot)
    }
  }

  #wait(wants: readonly Want[], { slot, limits }: { readonly slot: Slot; readonly limits: WaitLimits }): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = (): void => {
      clearTimeout(timer)
      removeFrom(waiter.slot, waiter)
      this.#waiter = null
    }
    const waiter: Waiter = {
      wants,
      slot,
      stay: this,
      take: () => {
        settle()
        this.#occupy(this.#slotsOf(wants))
        resolve()
      },
      giveUp: (why) => {
        settle()
        this.#places.forgetIfEmpty(waiter.slot)
        reject(busy(why))
      },
    }
    const timer = setTimeout(() => waiter.giveUp(slot.bound), limits.waitingMs)
    addTo(slot, waiter)
    this.#waiter = waiter
    return promise
  }

  #release(slot: Slot): void {
    count({ slot, client: this.client, change: -1 })
    while (slot.lines !== null && slot.used < slot.max) {
      const { without, having } = slot.lines
      if (!this.#serve(slot, without) && !this.#serve(slot, having)) break
    }
    this.#places.forgetIfEmpty(slot)
  }

  /** Gives the free place to the first waiting exchange that can use it, trying one exchange per client. False: no exchange can. */
  #serve(slot: Slot, lines: Lines): boolean {
    let looksLeft = Math.min(LOOKS_MAX, lines.size)
    for (const [client, line] of lines) {
      if (looksLeft === 0) return false
      looksLeft -= 1
      const [waiter] = line
      if (waiter === undefined) continue
      lines.delete(client)
      lines.set(client, line)
      const slots = this.#slotsOf(waiter.wants)
      const other = waiter.stay.#fullOf(slots)
      if (other === null) {
        waiter.take()
        return true
      }
      // An exchange that another limit holds back waits there from now on; then the next one is tried here.
      for (const one of slots) if (one !== other) this.#places.forgetIfEmpty(one)
      if (other === slot) continue
      removeFrom(slot, waiter)
      addTo(other, waiter)
      return true
    }
    return false
  }
}

const busy = (bound: Bound): RequestError => new RequestError('busy', MESSAGES[bound])
