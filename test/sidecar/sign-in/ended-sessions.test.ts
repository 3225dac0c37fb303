/** Ends of sessions at replicas whose clocks differ. */
import { expect, test } from 'vitest'
import { processMemory } from '../../../sidecar/sign-in/memory.ts'
import { createSealing } from '../../../sidecar/sign-in/sealing.ts'
import type { Session } from '../../../sidecar/sign-in/session.ts'
import { createSessions, type OwnCookies } from '../../../sidecar/sign-in/session-store.ts'

const NOW = 1_800_000_000_000
const HOUR = 3_600_000
const SKEWS = [-60_000, -2_000, 0, 2_000, 60_000]

/** Two replicas: one where the person signed in, and one where the session ends. */
function replicas(skewMs: number) {
  const sealing = createSealing([Buffer.alloc(32, 'k')], 'place')
  const lifetime = { sessionMaxMs: HOUR, idleMaxMs: HOUR }
  const memory = processMemory({ clock: () => NOW })
  const at = (clock: () => number) => createSessions({ sealing, memory, lifetime, clock })
  return { here: at(() => NOW + skewMs), there: at(() => NOW) }
}

const sessionAt = (beganMs: number, rest: Partial<Session> = {}): Session => ({
  id: 'i',
  provider: 'p',
  issuer: 'https://id.test',
  subject: 'ann',
  sid: 's',
  accessToken: 'a',
  tokenGotMs: beganMs,
  tokenExpiresMs: beganMs + HOUR,
  refreshToken: null,
  idToken: null,
  beganMs,
  issuedMs: NOW,
  seenMs: beganMs,
  ...rest,
})

const cookiesOf = (lines: readonly string[] | null): OwnCookies =>
  new Map(
    (lines ?? []).map((line) => [
      line.slice(0, line.indexOf('=')),
      line.slice(line.indexOf('=') + 1, line.indexOf(';')),
    ]),
  )

test.each(SKEWS)('a session that was ended is over, also where the clock is %i ms ahead', async (skewMs) => {
  const ends: readonly ((at: ReturnType<typeof replicas>['there'], session: Session) => Promise<void>)[] = [
    (at, session) => at.end(session),
    (at, { issuer, sid }) => at.endAt({ issuer, sid, subject: null, atMs: NOW }),
    (at, { issuer, subject }) => at.endAt({ issuer, sid: null, subject, atMs: NOW }),
  ]
  for (const end of ends) {
    const { here, there } = replicas(skewMs)
    const session = sessionAt(NOW + skewMs)
    const own = cookiesOf(await here.keep(session, new Map()))
    expect(await here.find(own)).toEqual(session)
    await end(there, session)
    expect([await here.find(own), await there.find(own)]).toEqual([null, null])
    expect([await here.isEnded(session), await there.isEnded(session)]).toEqual([true, true])
  }
})

test.each(SKEWS)('a sign-in after an end is a session, also where the clock is %i ms ahead', async (skewMs) => {
  const { here, there } = replicas(skewMs)
  await there.end(sessionAt(NOW))
  for (const sid of ['s', null]) await there.endAt({ issuer: 'https://id.test', sid, subject: 'ann', atMs: NOW })
  const later = sessionAt(NOW + skewMs, { id: 'j', issuedMs: NOW + 1_000 })
  const own = cookiesOf(await here.keep(later, new Map()))
  expect([await here.find(own), await there.find(own)]).toEqual([later, later])
})

test('a session of an issuer that names no time is over when its session at the issuer was ended', async () => {
  const { here } = replicas(0)
  await here.endAt({ issuer: 'https://id.test', sid: 's', subject: null, atMs: NOW - 1_000 })
  const own = cookiesOf(await here.keep(sessionAt(NOW, { issuedMs: null }), new Map()))
  expect(await here.find(own)).toBeNull()
})
