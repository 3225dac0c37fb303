/** Renews a session's tokens before they expire: once for all its requests, also across replicas that share a memory. */
import { type Attempts, createAttempts } from '../../pdp/shared/base/attempts.ts'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { RequestError } from '../request/errors.ts'
import type { SignInMemory } from './memory.ts'
import { SignInRefused } from './provider.ts'
import { digestOf, type Session } from './session.ts'

export type Refresher = {
  /**
   * The session with tokens that are valid for a while, or unchanged without a refresh token. Null: the issuer has ended the session, and
   * its access token has expired. Rejects with RequestError when the issuer does not answer and the token has expired.
   */
  renew(session: Session, how: Renewing): Promise<Session | null>
}
export type Renewing = {
  /** Gets new tokens from the issuer. Rejects with SignInRefused, or with another error if no answer comes. */
  readonly refresh: (session: Session) => Promise<Session>
  /** Reads the session again, since another replica may have renewed it; null: it has ended, or replicas share nothing. */
  readonly reread: (session: Session) => Promise<Session | null>
}

/** How many sign-ins one client address may begin: as many as at our own issuer. */
const STARTS = { triesMax: 600, windowMs: 60_000, keysMax: 10_000 }

/** The parts about sessions that all configurations of a process share. */
export type SharedSessions = { readonly memory: SignInMemory; readonly refresher: Refresher; readonly starts: Attempts }

export const shareSessions = (
  memory: SignInMemory,
  { clock, log }: { readonly clock: () => number; readonly log: { warn(line: object): void } },
): SharedSessions => ({
  memory,
  starts: createAttempts({ ...STARTS, clock }),
  refresher: createRefresher({
    memory,
    clock,
    onFailed: ({ issuer }, err) => log.warn({ event: 'session_refresh_failed', issuer, reason: messageOf(err) }),
  }),
})

/** Tokens are renewed this long before their expiry, but not before three quarters of their life. */
const BEFORE_MS = 60_000
/** For this long, requests with the old cookie get the renewed session: those under way, and those of other tabs. */
const GRACE_MS = 60_000
/** The time in which a replica must use the refresh token that it claimed. After it, another replica may try. */
const CLAIM_MS = 10_000
const WAIT_MS = 50
const WAITS_MAX = 100
const FLIGHTS_MAX = 10_000

function createRefresher(deps: {
  readonly memory: SignInMemory
  readonly clock: () => number
  readonly onFailed: (session: Session, err: unknown) => void
}): Refresher {
  const { memory, clock } = deps
  /** Renewals by the digest of the refresh token that they use. */
  const flights = new Map<string, { readonly renewed: Promise<Session>; readonly untilMs: number }>()

  function renewed(session: Session, refreshToken: string, how: Renewing): Promise<Session> {
    const digest = digestOf(refreshToken)
    const known = flights.get(digest)
    if (known !== undefined && clock() < known.untilMs) return known.renewed
    // The map begins with the oldest renewal, so the loop may stop at the first one that is still needed.
    for (const [key, { untilMs }] of flights) {
      if (clock() < untilMs && flights.size < FLIGHTS_MAX) break
      flights.delete(key)
    }
    const flight = memory.isShared ? renewShared(session, digest, how) : how.refresh(session)
    flights.set(digest, { renewed: flight, untilMs: clock() + GRACE_MS })
    flight.catch(() => flights.delete(digest))
    return flight
  }

  /** Lets one replica use the refresh token, while the others wait for the stored result. */
  async function renewShared(session: Session, digest: string, how: Renewing): Promise<Session> {
    const claim = `refresh:${digest}`
    for (let waits = 0; waits < WAITS_MAX; waits += 1) {
      if (await memory.claim(claim, CLAIM_MS)) {
        // Another replica may have renewed the session after it was read here and before the claim.
        const now = (await how.reread(session)) ?? session
        if (now.refreshToken !== session.refreshToken) return now
        return await how.refresh(session).catch(async (err: unknown) => {
          await memory.remove(claim)
          throw err
        })
      }
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
      const now = await how.reread(session)
      if (now === null) throw new SignInRefused('invalid_grant', 'the session has ended meanwhile')
      if (now.refreshToken !== session.refreshToken) return now
    }
    throw new Error('another replica did not renew the session in time')
  }

  return {
    async renew(session, how) {
      const { refreshToken, tokenExpiresMs, tokenGotMs } = session
      const life = Math.max(0, tokenExpiresMs - tokenGotMs)
      if (refreshToken === null || clock() < tokenExpiresMs - Math.min(BEFORE_MS, life / 4)) return session
      try {
        return await renewed(session, refreshToken, how)
      } catch (err) {
        if (err instanceof RequestError) throw err
        deps.onFailed(session, err)
        // Another replica may have used the refresh token already. The access token is still valid.
        if (clock() < tokenExpiresMs) return session
        if (err instanceof SignInRefused && err.code === 'invalid_grant') return null
        throw new RequestError('issuer_unavailable', 'The identity provider did not renew the session')
      }
    },
  }
}
