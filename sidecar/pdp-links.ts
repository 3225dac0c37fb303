/** The connections to all PDP addresses, and which of them is worth a question: circuit breaking, never fail-open. */
import type { ChannelCredentials } from '@grpc/grpc-js'
import { createPdpLink, type PdpLink } from './pdp-link.ts'

export type LinkChange = { readonly address: string; readonly open: boolean; readonly reason: string }
export type LinksOptions = {
  /** `host:port`. */
  readonly addresses: readonly string[]
  readonly credentials: ChannelCredentials
  /** The token that says who asks, when a stream starts; null: none is sent. Throws when it cannot be had. */
  readonly authorize?: (() => string) | null
  readonly random: () => number
  /** Milliseconds, from any start. */
  readonly clock: () => number
  readonly onLinkChange?: (change: LinkChange) => void
}
export type Choice =
  | { readonly kind: 'link'; readonly link: PdpLink }
  /** One may open at any moment. */
  | { readonly kind: 'wait' }
  /** Every address is known to be dead: waiting would only pile up requests. */
  | { readonly kind: 'none' }

export type PdpLinks = {
  readonly count: number
  /** One that can be asked now, other than `except`. */
  choose(except: PdpLink | null): Choice
  /** It let a question wait: others are asked first for a while. */
  slow(link: PdpLink): void
  /** It gave an answer, of whatever kind. */
  good(link: PdpLink): void
  /** It gave none within the deadline. */
  bad(link: PdpLink): void
  /** Called once each, when a link opens. */
  readonly waiting: Set<() => void>
  close(): void
}
type Health = { failures: number; brokenUntilMs: number; slowUntilMs: number; closedAtMs: number }

const SLOW_MS = 1_000
/** Unanswered questions in a row after which an address is left alone, but for one question each BREAK_MS. */
const FAILURES_MAX = 5
const BREAK_MS = 1_000
/** For how long after a connection ended questions wait for the next one. */
const RECONNECT_WAIT_MS = 1_000

export function createPdpLinks(options: LinksOptions): PdpLinks {
  const { addresses, credentials, authorize = null, random, clock, onLinkChange } = options
  const waiting = new Set<() => void>()
  const healths = new Map<PdpLink, Health>()
  const links = addresses.map(open)
  let turn = 0

  function open(address: string): PdpLink {
    const health: Health = { failures: 0, brokenUntilMs: 0, slowUntilMs: 0, closedAtMs: clock() }
    const link = createPdpLink({
      address,
      credentials,
      authorize,
      random,
      onOpen() {
        onLinkChange?.({ address, open: true, reason: 'connected' })
        Object.assign(health, { failures: 0, brokenUntilMs: 0 })
        const attempts = [...waiting]
        waiting.clear()
        for (const attempt of attempts) attempt()
      },
      onClosed(reason, wasOpen) {
        if (wasOpen) health.closedAtMs = clock()
        onLinkChange?.({ address, open: false, reason })
      },
    })
    healths.set(link, health)
    return link
  }

  function choose(except: PdpLink | null): Choice {
    const nowMs = clock()
    turn = (turn + 1) % links.length
    let second: PdpLink | null = null
    let mayOpen = false
    for (let at = 0; at < links.length; at += 1) {
      const link = links[(turn + at) % links.length]
      const health = link === undefined ? undefined : healths.get(link)
      if (link === undefined || health === undefined || link === except) continue
      if (!link.isOpen()) mayOpen ||= nowMs - health.closedAtMs < RECONNECT_WAIT_MS
      else if (health.failures < FAILURES_MAX && health.slowUntilMs <= nowMs) return { kind: 'link', link }
      else if (health.failures < FAILURES_MAX || health.brokenUntilMs <= nowMs) second ??= link
    }
    if (second === null) return { kind: mayOpen ? 'wait' : 'none' }
    // This question is the one that tries whether a broken address has recovered.
    const tried = healths.get(second)
    if (tried !== undefined && tried.failures >= FAILURES_MAX) tried.brokenUntilMs = nowMs + BREAK_MS
    return { kind: 'link', link: second }
  }

  return {
    count: links.length,
    waiting,
    choose,
    slow: (link) => void Object.assign(healths.get(link) ?? {}, { slowUntilMs: clock() + SLOW_MS }),
    good: (link) => void Object.assign(healths.get(link) ?? {}, { failures: 0, brokenUntilMs: 0, slowUntilMs: 0 }),
    bad(link) {
      const health = healths.get(link)
      if (health === undefined) return
      health.failures += 1
      if (health.failures >= FAILURES_MAX) health.brokenUntilMs = clock() + BREAK_MS
    },
    close() {
      for (const link of links) link.close()
    },
  }
}
