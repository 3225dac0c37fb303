/** The connections to all PDP addresses, and which of them is worth a question: circuit breaking, never fail-open. */
import type { ChannelCredentials } from '@grpc/grpc-js'
import { createLocalLag, type LocalLag } from './local-lag.ts'
import { createPdpLink, type PdpLink } from './stream.ts'

export type LinkChange = {
  readonly address: string
  readonly open: boolean
  readonly reason: string
  /** False when a further try to connect failed. */
  readonly wasOpen: boolean
}
export type LinksOptions = {
  /** `host:port`. */
  readonly addresses: readonly string[]
  readonly credentials: ChannelCredentials
  /** The token that says who asks, when a stream starts; null: none is sent. Throws when it cannot be had. */
  readonly authorize?: (() => string) | null
  readonly random: () => number
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** For one attempt to connect. */
  readonly connectMs?: number
  readonly onLinkChange?: (change: LinkChange) => void
  /** The `Date` field of the answer to a stream that began at `startedMs`. */
  readonly onDate?: (address: string, date: string, startedMs: number) => void
}
export type Choice =
  | { readonly kind: 'link'; readonly link: PdpLink }
  /** One may open at any moment. */
  | { readonly kind: 'wait' }
  /** Every address is known to be dead: waiting would only pile up requests. */
  | { readonly kind: 'none' }

export type PdpLinks = {
  readonly count: number
  readonly lag: LocalLag
  /** One that can be asked now, other than `except`. */
  choose(except: PdpLink | null): Choice
  /** It let a question wait: others are asked first for a while. */
  slow(link: PdpLink): void
  /** It answered that it cannot decide: others are asked first for a longer while. */
  unwell(link: PdpLink): void
  /** It gave an answer. */
  good(link: PdpLink): void
  /** It gave none within the deadline. */
  bad(link: PdpLink): void
  /** Since when no address can be asked, or answers; null: one does. */
  silentSinceMs(): number | null
  /** Called once each, when a link opens. */
  readonly waiting: Set<() => void>
  close(): void
}
/** True for errors that another address may not have: this one has lost its database, or is about to stop. */
export const isOfAddress = (code: string): boolean => code === 'store_unavailable' || code === 'draining'

type Health = { failures: number; brokenUntilMs: number; slowUntilMs: number; closedAtMs: number }

const CONNECT_MS = 3_000
const SLOW_MS = 1_000
const UNWELL_MS = 2_000
/** Unanswered questions in a row after which an address is left alone, but for one question each BREAK_MS. */
const FAILURES_MAX = 5
const BREAK_MS = 1_000
/** For how long after a connection ended questions wait for the next one. */
const RECONNECT_WAIT_MS = 1_000

export function createPdpLinks(options: LinksOptions): PdpLinks {
  const { addresses, credentials, authorize = null, random, clock, connectMs = CONNECT_MS } = options
  const { onLinkChange, onDate } = options
  const waiting = new Set<() => void>()
  const healths = new Map<PdpLink, Health>()
  const lag = createLocalLag()
  let silentSinceMs: number | null = clock()
  const links = addresses.map(open)
  let turn = 0

  function open(address: string): PdpLink {
    const health: Health = { failures: 0, brokenUntilMs: 0, slowUntilMs: 0, closedAtMs: clock() }
    const link = createPdpLink({
      address,
      credentials,
      authorize,
      random,
      clock,
      connectMs,
      onDate: (date, startedMs) => onDate?.(address, date, startedMs),
      onOpen() {
        onLinkChange?.({ address, open: true, reason: 'connected', wasOpen: false })
        Object.assign(health, { failures: 0, brokenUntilMs: 0 })
        silentSinceMs = null
        const attempts = [...waiting]
        waiting.clear()
        for (const attempt of attempts) attempt()
      },
      onClosed(reason, wasOpen) {
        if (wasOpen) health.closedAtMs = clock()
        onLinkChange?.({ address, open: false, reason, wasOpen })
        noteSilence()
      },
    })
    healths.set(link, health)
    return link
  }

  function noteSilence(): void {
    const answers = links.some((link) => link.isOpen() && (healths.get(link)?.failures ?? 0) < FAILURES_MAX)
    if (!answers) silentSinceMs ??= clock()
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
    lag,
    waiting,
    choose,
    silentSinceMs: () => silentSinceMs,
    slow: (link) => void Object.assign(healths.get(link) ?? {}, { slowUntilMs: clock() + SLOW_MS }),
    unwell: (link) =>
      void Object.assign(healths.get(link) ?? {}, { failures: 0, brokenUntilMs: 0, slowUntilMs: clock() + UNWELL_MS }),
    good(link) {
      Object.assign(healths.get(link) ?? {}, { failures: 0, brokenUntilMs: 0, slowUntilMs: 0 })
      silentSinceMs = null
    },
    bad(link) {
      const health = healths.get(link)
      if (health === undefined) return
      health.failures += 1
      if (health.failures >= FAILURES_MAX) health.brokenUntilMs = clock() + BREAK_MS
      noteSilence()
    },
    close() {
      lag.close()
      for (const link of links) link.close()
    },
  }
}
