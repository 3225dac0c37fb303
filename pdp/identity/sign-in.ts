/** Signing in by password, and by a code for who has an authenticator: bounded tries, the same answer for whom there is not. */
import type { Log } from '../process/log.ts'
import type { Directory } from '../store/directory.ts'
import { type Assurance, BY_PASSWORD, BY_PASSWORD_AND_CODE } from './assurance.ts'
import { type Attempts, BusyError, type Gate } from './attempts.ts'
import type { LoginProblem } from './pages-sign-in.ts'
import { open, seal } from './sealing.ts'
import type { SecondFactor } from './second-factor.ts'
import { verifySecret } from './secrets.ts'

const EMAIL = /^[^\s\0]{1,254}$/
export const isEmail = (text: string): boolean => EMAIL.test(text)
/** For which a password that was right waits for its code. */
const WAITING_SECONDS_MAX = 300

/** Whose password was right, and when: `ts` in seconds since the epoch, from before it was looked at. */
export type Waiting = { readonly accountId: string; readonly ts: number }
export type SignedIn = Waiting & Assurance
/** `client`: what the person signs in to, for the log. All throw PdpError `store_unavailable`. */
export type SignIn = {
  /** `waiting`: the person has an authenticator, whose code is asked for next. */
  password(attempt: {
    readonly email: string
    readonly password: string
    readonly client: string
  }): Promise<SignedIn | { readonly waiting: Waiting } | { readonly problem: LoginProblem }>
  code(attempt: {
    readonly waiting: Waiting
    readonly code: string
    readonly client: string
  }): Promise<SignedIn | { readonly problem: LoginProblem }>
  /** For a hidden field between the two steps; `page` is where it is good. */
  seal(waiting: Waiting, page: string): string
  /** Null when it was not sealed for this page, or too long ago. */
  open(sealed: string, page: string): Waiting | null
}

export type SignInDeps = {
  readonly directory: Pick<Directory, 'user' | 'userByEmail'>
  readonly secondFactor: Pick<SecondFactor, 'has' | 'accept'>
  /** One count of passwords and codes together, by address. */
  readonly attempts: Attempts
  readonly secretGate: Gate
  /** Checked when there is no such person, so that the answer takes as long. */
  readonly decoyHash: string
  readonly sealingKey: Buffer
  readonly clock: () => number
  readonly log: Log
}

export function createSignIn(deps: SignInDeps): SignIn {
  const { directory, secondFactor, attempts, log } = deps
  const nowSeconds = (): number => Math.floor(deps.clock() / 1_000)

  /** Null: no tries are left for now. A try that nobody judged does not count. */
  async function tried<T>(key: string, judge: () => Promise<T>): Promise<T | null> {
    if (!attempts.take(key)) return null
    try {
      return await judge()
    } catch (error) {
      attempts.giveBack(key)
      throw error
    }
  }

  function signedIn(key: string, waiting: Waiting, { by, client }: { by: Assurance; client: string }): SignedIn {
    attempts.forget(key)
    log.info({ event: 'signed_in', user: waiting.accountId, acr: by.acr, client })
    return { ...waiting, ...by }
  }

  return {
    async password({ email, password, client }) {
      if (!isEmail(email)) return { problem: 'wrong' }
      const ts = nowSeconds()
      const key = email.toLowerCase()
      try {
        const accountId = await tried(key, () => authenticate(deps, email, password))
        if (accountId === null) return { problem: 'tooMany' }
        if (accountId === NOBODY) {
          log.info({ event: 'sign_in_refused', client })
          return { problem: 'wrong' }
        }
        if (!(await secondFactor.has(accountId))) return signedIn(key, { accountId, ts }, { by: BY_PASSWORD, client })
        // Not forgotten: else the right password would give a guesser of codes new tries.
        attempts.giveBack(key)
        return { waiting: { accountId, ts } }
      } catch (error) {
        if (error instanceof BusyError) return { problem: 'busy' }
        throw error
      }
    },
    async code({ waiting, code, client }) {
      const user = await directory.user(waiting.accountId)
      if (user === null) return { problem: 'wrong' }
      const key = (user.email ?? user.id).toLowerCase()
      const isRight = await tried(key, () => secondFactor.accept(user.id, code))
      if (isRight === null) return { problem: 'tooMany' }
      if (isRight) return signedIn(key, waiting, { by: BY_PASSWORD_AND_CODE, client })
      log.info({ event: 'code_refused', user: user.id, client })
      return { problem: 'wrongCode' }
    },
    seal: (waiting, page) => seal(deps.sealingKey, sealedAs(page), JSON.stringify(waiting)),
    open(sealed, page) {
      const waiting = parseWaiting(deps.sealingKey, sealedAs(page), sealed)
      return waiting !== null && nowSeconds() - waiting.ts <= WAITING_SECONDS_MAX ? waiting : null
    },
  }
}

const sealedAs = (page: string): string => `password accepted on ${page}`

function parseWaiting(key: Buffer, name: string, sealed: string): Waiting | null {
  try {
    return JSON.parse(open(key, name, sealed))
  } catch {
    return null
  }
}

/** Not an id. */
const NOBODY = ''

async function authenticate(deps: SignInDeps, email: string, password: string): Promise<string> {
  const user = await deps.directory.userByEmail(email)
  const stored = user?.passwordHash ?? null
  const matches = await deps.secretGate(() => verifySecret(password, stored ?? deps.decoyHash))
  return matches && stored !== null && user !== null ? user.id : NOBODY
}
