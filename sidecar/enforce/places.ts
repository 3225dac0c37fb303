/** Limits open exchanges for each client, subject and route, and in total. An exchange without a place waits its turn for a short time. */
import { RequestError } from '../request/errors.ts'

export type Bound = 'client' | 'subject' | 'route' | 'all'
/** One of at most `max` places with this name. */
export type Want = { readonly bound: Bound; readonly name: string; readonly max: number }
export type WaitLimits = {
  /** How many may wait for one name. */
  readonly waitingMax: number
  readonly waitingMs: number
}

const MESSAGES: { readonly [bound in Bound]: string } = {
  client: 'Too many requests of this client are open',
  subject: 'Too many requests of this subject are open',
  route: 'Too many requests of this route are open',
  all: 'Too many requests are open',
}

type Slot = { used: number; readonly waiting: Set<Waiter> }
type Slots = Map<string, Slot>
type Waiter = {
  readonly wants: readonly Want[]
  /** The limit that it waits for. */
  slot: Slot
  readonly stay: Stay
  readonly take: () => void
  readonly giveUp: (bound: Bound) => void
}

/** Shared by all exchanges of a process, so that they are still counted after a reload. */
export class Places {
  readonly #slots: { readonly [bound in Bound]: Slots } = {
    client: new Map(),
    subject: new Map(),
    route: new Map(),
    all: new Map(),
  }

  slotOf({ bound, name }: Want): Slot {
    const slots = this.#slots[bound]
    let slot = slots.get(name)
    if (slot === undefined) {
      slot = { used: 0, waiting: new Set() }
      slots.set(name, slot)
    }
    return slot
  }

  isFull({ bound, name, max }: Want): boolean {
    return (this.#slots[bound].get(name)?.used ?? 0) >= max
  }

  nameCount(): number {
    return Object.values(this.#slots).reduce((count, slots) => count + slots.size, 0)
  }

  forget({ bound, name }: Want): void {
    this.#slots[bound].delete(name)
  }
}

/** The places of one exchange. */
export class Stay {
  readonly #places: Places
  readonly #held: Want[] = []
  #waiter: Waiter | null = null
  #over = false

  constructor(places: Places) {
    this.#places = places
  }

  /** Takes one place of each limit, or none. Null: no wait was needed. Throws or rejects with RequestError if none becomes free in time. */
  enter(wants: readonly Want[], limits: WaitLimits): Promise<void> | null {
    const full = this.#fullOf(wants)
    // The client left meanwhile.
    if (this.#over) throw busy('client')
    if (full === null) {
      this.#occupy(wants)
      return null
    }
    const slot = this.#places.slotOf(full)
    if (slot.waiting.size >= limits.waitingMax) throw busy(full.bound)
    return this.#wait(wants, { slot, bound: full.bound, limits })
  }

  /** Releases all places, and ends every wait. */
  leave(): void {
    if (this.#over) return
    this.#over = true
    if (this.#waiter !== null) this.#waiter.giveUp('all')
    for (const want of this.#held) this.#release(want)
    this.#held.length = 0
  }

  #fullOf(wants: readonly Want[]): Want | null {
    for (const want of wants) if (this.#places.isFull(want)) return want
    return null
  }

  #occupy(wants: readonly Want[]): void {
    for (const want of wants) {
      this.#places.slotOf(want).used += 1
      this.#held.push(want)
    }
  }

  #wait(
    wants: readonly Want[],
    { slot, bound, limits }: { readonly slot: Slot; readonly bound: Bound; readonly limits: WaitLimits },
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = (): void => {
      clearTimeout(timer)
      waiter.slot.waiting.delete(waiter)
      this.#waiter = null
    }
    const waiter: Waiter = {
      wants,
      slot,
      stay: this,
      take: () => {
        settle()
        this.#occupy(wants)
        resolve()
      },
      giveUp: (why) => {
        settle()
        reject(busy(why))
      },
    }
    const timer = setTimeout(() => waiter.giveUp(bound), limits.waitingMs)
    slot.waiting.add(waiter)
    this.#waiter = waiter
    return promise
  }

  #release(want: Want): void {
    const slot = this.#places.slotOf(want)
    slot.used -= 1
    // An exchange that another limit still holds back waits there; the next one gets the turn here.
    for (const waiter of slot.waiting) {
      if (slot.used >= want.max) break
      const full = waiter.stay.#fullOf(waiter.wants)
      if (full === null) {
        waiter.take()
        continue
      }
      slot.waiting.delete(waiter)
      waiter.slot = this.#places.slotOf(full)
      waiter.slot.waiting.add(waiter)
    }
    if (slot.used === 0 && slot.waiting.size === 0) this.#places.forget(want)
  }
}

const busy = (bound: Bound): RequestError => new RequestError('busy', MESSAGES[bound])
