/** Keeps browsers' sessions: whole in sealed cookies; or, if replicas share a memory, there, with a sealed ticket in a cookie. */

import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { LoggedOut } from '../../pdp/shared/token/logout-token.ts'
import { RequestError } from '../request/errors.ts'
import type { SignInMemory } from './memory.ts'
import type { Sealing } from './sealing.ts'
import { digestOf, endOf, type Lifetime, parseJson, parseSession, type Session } from './session.ts'
import { joinSession, splitSession } from './session-cookies.ts'

/** Cookies of the sidecar by name. */
export type OwnCookies = ReadonlyMap<string, string>
export type Sessions = {
  /** The session; null: none, or an ended one. Rejects with RequestError when this cannot be known. */
  find(own: OwnCookies): Promise<Session | null>
  /** Values for Set-Cookie; null: the session is too large for cookies. Rejects with RequestError. */
  keep(session: Session, own: OwnCookies): Promise<readonly string[] | null>
  /** Reads the session again if replicas share sessions; null: it has ended, or is not shared. */
  reread(session: Session): Promise<Session | null>
  /** True when the session has been ended. Rejects with RequestError when this cannot be known. */
  isEnded(session: Session): Promise<boolean>
  end(session: Session): Promise<void>
  /** Ends the sessions that the issuer names by `sid`, and those of the subject that may be meant; without `sid`, all of the subject. */
  endAt(at: LoggedOut & { readonly issuer: string }): Promise<void>
}

/** The content of the cookie: it names the session and whatever may have ended it, so one request to the memory is enough. */
type Ticket = Pick<Session, 'id' | 'issuer' | 'sid' | 'subject'>

const recordKey = (id: string): string => `session:${id}`
/** `sidless`: the subject's sessions that do not name the issuer's session. */
const endedKey = (kind: 'id' | 'sid' | 'sub' | 'sidless', ...parts: readonly string[]): string =>
  `ended:${kind}:${digestOf(JSON.stringify(parts))}`

function endingKeys({ id, issuer, sid, subject }: Ticket): readonly string[] {
  const ofPerson = [endedKey('sub', issuer, subject), endedKey('sidless', issuer, subject)]
  return [endedKey('id', id), sid === null ? endedKey('sid', issuer) : endedKey('sid', issuer, sid), ...ofPerson]
}

export function createSessions(deps: {
  readonly sealing: Sealing
  readonly memory: SignInMemory
  readonly lifetime: Lifetime
  readonly clock: () => number
}): Sessions {
  const { sealing, memory, lifetime, clock } = deps

  /** The session; null when it has ended. */
  function current(session: Session | null, ended: readonly (string | null)[]): Session | null {
    if (session === null || clock() >= endOf(session, lifetime)) return null
    return isEnded(session, ended) ? null : session
  }

  async function findShared(ticket: Ticket): Promise<Session | null> {
    const [record, ...ended] = await reading(memory.get([recordKey(ticket.id), ...endingKeys(ticket)]))
    const text = record == null ? null : sealing.open('record', record)
    const session = text === null ? null : parseSession(text)
    return session?.id === ticket.id ? current(session, ended) : null
  }

  return {
    async find(own) {
      const sealed = joinSession(own)
      const text = sealed === null ? null : sealing.open(memory.isShared ? 'ticket' : 'session', sealed)
      if (text === null) return null
      if (memory.isShared) {
        const ticket = parseTicket(text)
        return ticket === null ? null : findShared(ticket)
      }
      const session = parseSession(text)
      return session === null ? null : current(session, await reading(memory.get(endingKeys(session))))
    },
    async keep(session, own) {
      if (!memory.isShared) return splitSession(sealing.seal('session', JSON.stringify(session)), own)
      const record = sealing.seal('record', JSON.stringify(session))
      await reading(memory.put(recordKey(session.id), record, endOf(session, lifetime) - clock()))
      const { id, issuer, sid, subject } = session
      const ticket: Ticket = { id, issuer, sid, subject }
      return splitSession(sealing.seal('ticket', JSON.stringify(ticket)), own)
    },
    isEnded: async (session) => isEnded(session, await reading(memory.get(endingKeys(session)))),
    reread: async (session) => (memory.isShared ? findShared(session) : null),
    async end(session) {
      await reading(memory.put(endedKey('id', session.id), String(clock()), lifetime.sessionMaxMs))
      if (memory.isShared) await reading(memory.remove(recordKey(session.id)))
    },
    async endAt({ issuer, sid, subject, atMs }) {
      const ofSubject = subject === null ? [] : [endedKey(sid === null ? 'sub' : 'sidless', issuer, subject)]
      const keys = sid === null ? ofSubject : [endedKey('sid', issuer, sid), ...ofSubject]
      for (const key of keys) await reading(memory.put(key, String(atMs), lifetime.sessionMaxMs))
    },
  }
}

/**
 * `ended`: the values of the memory at the keys that may end the session. A session id of ours is never used again, so its time does not
 * matter. A person or a session of the issuer may sign in again; then times of the issuer's clock are compared, and never of two clocks.
 */
function isEnded({ issuedMs, beganMs, sid }: Session, ended: readonly (string | null)[]): boolean {
  const [id = null, session = null, person = null, sidless = null] = ended
  const isAfter = (ms: number | null, at: string): boolean => ms !== null && ms > Number(at)
  if (id !== null || (session !== null && !isAfter(issuedMs, session))) return true
  return [person, sid === null ? sidless : null].some((at) => at !== null && !isAfter(issuedMs ?? beganMs, at))
}

function parseTicket(text: string): Ticket | null {
  const read = parseJson(text)
  if (typeof read !== 'object' || read === null) return null
  const { id, issuer, sid, subject } = read as { readonly [name: string]: unknown }
  if (typeof id !== 'string' || typeof issuer !== 'string' || typeof subject !== 'string') return null
  return sid === null || typeof sid === 'string' ? { id, issuer, sid, subject } : null
}

/** If the memory cannot be read, the request is refused. */
const reading = <T>(work: Promise<T>): Promise<T> =>
  work.catch((err: unknown) => {
    const reason = messageOf(err)
    throw new RequestError('session_unavailable', 'The session cannot be read now', `the memory of sessions: ${reason}`)
  })
