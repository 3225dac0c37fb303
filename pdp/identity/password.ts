/** Signing in by password: bounded tries, bounded load, and the same answer and time whether or not the person exists. */
import type { Log } from '../process/log.ts'
import type { Directory } from '../store/contracts.ts'
import { type Attempts, BusyError, type Gate } from './attempts.ts'
import { ACR_PASSWORD } from './engine-settings.ts'
import type { LoginProblem } from './pages.ts'
import { verifySecret } from './secrets.ts'

const EMAIL = /^[^\s\0]{1,254}$/
export const isEmail = (text: string): boolean => EMAIL.test(text)

/** `ts`: seconds since the epoch. */
export type SignedIn = {
  readonly accountId: string
  readonly acr: string
  readonly amr: readonly string[]
  readonly ts: number
}
/** `client`: what the person signs in to, for the log. Throws PdpError `store_unavailable`. */
export type SignIn = (request: {
  readonly email: string
  readonly password: string
  readonly client: string
}) => Promise<SignedIn | { readonly problem: LoginProblem }>

export type PasswordDeps = {
  readonly directory: Pick<Directory, 'userByEmail'>
  readonly attempts: Attempts
  readonly secretGate: Gate
  /** Checked when there is no such person, so that the answer takes as long. */
  readonly decoyHash: string
  readonly clock: () => number
  readonly log: Log
}

export function createSignIn(deps: PasswordDeps): SignIn {
  return async ({ email, password, client }) => {
    const key = email.toLowerCase()
    if (!isEmail(email)) return { problem: 'wrong' }
    if (!deps.attempts.take(key)) return { problem: 'tooMany' }
    let accountId: string | null
    try {
      accountId = await authenticate(deps, email, password)
    } catch (error) {
      deps.attempts.giveBack(key)
      if (error instanceof BusyError) return { problem: 'busy' }
      throw error
    }
    if (accountId === null) {
      deps.log.info({ event: 'sign_in_refused', client })
      return { problem: 'wrong' }
    }
    deps.attempts.forget(key)
    deps.log.info({ event: 'signed_in', user: accountId, client })
    return { accountId, acr: ACR_PASSWORD, amr: ['pwd'], ts: Math.floor(deps.clock() / 1_000) }
  }
}

async function authenticate(deps: PasswordDeps, email: string, password: string): Promise<string | null> {
  const user = await deps.directory.userByEmail(email)
  const stored = user?.passwordHash ?? null
  const matches = await deps.secretGate(() => verifySecret(password, stored ?? deps.decoyHash))
  return matches && stored !== null && user !== null ? user.id : null
}
