/** Signing in by password, and by a code if the person has an authenticator: tries are limited, and unknown people get the same answer. */
import type { IncomingMessage } from 'node:http'
import type { Directory } from '../../../engine/store/directory.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import type { Html } from '../../../shared/base/html.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { Frame } from '../../html/frame.ts'
import type { Words } from '../../html/words/words.ts'
import { BusyError, type Semaphore } from '../../limits/attempts.ts'
import type { Source } from '../../limits/devices.ts'
import type { KnownAddresses } from '../../limits/known-addresses.ts'
import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import type { Starts } from '../../limits/starts.ts'
import { isRecoveryCode } from '../factors/recovery-codes.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import { costOf, isWholeSecret } from '../passwords/imported-hash.ts'
import type { PasswordDecoys } from '../passwords/password-decoys.ts'
import { hashSecret, verifySecret } from '../passwords/password-hash.ts'
import { type Assurance, BY_PASSWORD, BY_PASSWORD_AND_CODE } from './acr.ts'
import type { LoginProblem } from './sign-in-pages.ts'

const EMAIL = /^[^\s\0]{1,254}$/
export const isEmail = (text: string): boolean => EMAIL.test(text)
/** How long a right password waits for its code. */
const WAITING_SECONDS_MAX = 300
/** Tries of passwords and codes together, in one window: of one device or address, and of all unknown addresses together. */
const SOURCE_TRIES_MAX = 10
const STRANGERS_TRIES_MAX = 30
/** How long after its last sign-in an address counts as the person's own. */
const ADDRESS_KNOWN_MS = 30 * 86_400_000

/** The person whose password was right. `ts`: the time just before its check, in seconds since the epoch. */
export type Waiting = { readonly accountId: string; readonly ts: number }
/** `left`: how many recovery codes are left, for a person who has just used one. */
export type SignedIn = Waiting & Assurance & { readonly left?: number }
/** Tells the person, by mail after the answer, that a recovery code was used. */
export type RecoveryUsed = (user: string, about: { readonly left: number; readonly words: Words }) => void
/** `client`: the client that the log names. All methods throw PdpError `store_unavailable`. */
export type SignIn = {
  /** Checks a password. `waiting`: the person has an authenticator and must give its code next. */
  password(attempt: {
    readonly email: string
    readonly password: string
    readonly client: string
    readonly source: Source
  }): Promise<SignedIn | { readonly waiting: Waiting } | { readonly problem: LoginProblem }>
  /** Checks a code of the app, or a recovery code. */
  code(attempt: {
    readonly waiting: Waiting
    readonly code: string
    readonly client: string
    readonly source: Source
  }): Promise<SignedIn | { readonly problem: LoginProblem }>
  /** Admits a person who has proven their identity in another way. */
  admit(
    waiting: Waiting,
    how: { readonly by: Assurance; readonly client: string; readonly source: Source },
  ): Promise<SignedIn>
  /** Encrypts the first step for a hidden field of the second. It counts only on `page`. */
  seal(waiting: Waiting, page: string): string
  /** Opens a sealed step. Null when it was sealed for another page, or too long ago. */
  open(sealed: string, page: string): Waiting | null
}

/** The page where the person goes on: one of ours, or an application's sign-in. */
export type Target =
  | { readonly path: string }
  /** `fresh`: the application demands a new sign-in. */
  | { readonly interaction: string; readonly fresh: boolean }
/** Signing in at other providers: buttons for the sign-in pages, and the result for an interaction. */
export type Elsewhere = {
  /** A button for each provider that the organization may use; `organization` null: for each that everybody may use. */
  buttons(frame: Frame, target: Target, organization: string | null): Promise<Html>
  /** A link to the page of connected providers; empty if there is no provider. */
  link(frame: Frame): Promise<Html>
  /** The person who came back from a provider to this interaction. */
  handedOver(req: IncomingMessage, uid: string): SignedIn | null
}

export type SignInDeps = {
  readonly directory: Pick<Directory, 'user' | 'userByEmail' | 'foldEmail' | 'replacePasswordHash'>
  readonly secondFactor: Pick<SecondFactor, 'has' | 'accept'>
  readonly attempts: SharedAttempts
  readonly starts: Starts
  readonly known: KnownAddresses
  readonly secretSemaphore: Semaphore
  readonly decoys: PasswordDecoys
  /** A hash as new ones are made. */
  readonly decoyHash: string
  readonly masterKeys: MasterKeys
  readonly clock: () => number
  readonly log: Log
}

export function createSignIn(deps: SignInDeps): SignIn {
  const { directory, secondFactor, attempts, starts, known, masterKeys, clock, log } = deps
  const nowSeconds = (): number => Math.floor(clock() / 1_000)
  const tries = createTries({ attempts, starts })

  async function signedIn(
    budgets: readonly Budget[] | null,
    waiting: Waiting,
    { by, client, source }: { by: Assurance; client: string; source: Source },
  ): Promise<SignedIn> {
    known.add(source.address)
    await attempts.mark(knownKey(waiting.accountId, source), ADDRESS_KNOWN_MS)
    // Forgets tries from the person's own device or address only: tries of strangers stay counted.
    const [own, ...others] = budgets ?? []
    if (own !== undefined) await attempts.forget(own.key)
    for (const { key } of others) await attempts.giveBack(key)
    log.info({ event: 'signed_in', user: waiting.accountId, acr: by.acr, client })
    return { ...waiting, ...by }
  }

  return {
    async password({ email, password, client, source }) {
      if (!isEmail(email)) return { problem: 'wrong' }
      const ts = nowSeconds()
      // The address in the form of the look-up: else each spelling would have its own tries.
      const [user, folded] = await Promise.all([directory.userByEmail(email), directory.foldEmail(email)])
      const budgets = await tries.budgetsOf(user?.id ?? `nobody ${folded}`, source)
      try {
        const accountId = await tries.tried(budgets, () => authenticate(deps, user, { password, folded, source }))
        if (accountId === null) return { problem: 'tooMany' }
        if (accountId === NOBODY) {
          log.info({ event: 'sign_in_refused', client })
          return { problem: 'wrong' }
        }
        if (!(await secondFactor.has(accountId)))
          return await signedIn(budgets, { accountId, ts }, { by: BY_PASSWORD, client, source })
        // Gives back only this try: to forget all would give new tries to a person who knows the password and guesses codes.
        for (const { key } of budgets ?? []) await attempts.giveBack(key)
        return { waiting: { accountId, ts } }
      } catch (err) {
        if (err instanceof BusyError) return { problem: 'busy' }
        throw err
      }
    },
    async code({ waiting, code, client, source }) {
      const user = await directory.user(waiting.accountId)
      if (user === null) return { problem: 'wrong' }
      const budgets = await tries.budgetsOf(user.id, source)
      const accepted = await tries.tried(budgets, () => secondFactor.accept(user.id, code))
      if (accepted === null) return { problem: 'tooMany' }
      if (accepted.by === 'nothing') {
        log.info({ event: 'code_refused', user: user.id, client })
        return { problem: isRecoveryCode(code) ? 'wrongRecovery' : 'wrongCode' }
      }
      const done = await signedIn(budgets, waiting, { by: BY_PASSWORD_AND_CODE, client, source })
      if (accepted.by === 'app') return done
      log.info({ event: 'recovery_code_used', user: user.id, left: accepted.left, client })
      return { ...done, left: accepted.left }
    },
    admit: (waiting, how) => signedIn(null, waiting, how),
    seal: (waiting, page) => seal(masterKeys.derive(PURPOSE), sealedAs(page), JSON.stringify(waiting)),
    open(sealed, page) {
      const waiting = parseWaiting(masterKeys.derive(PURPOSE), sealedAs(page), sealed)
      return waiting !== null && nowSeconds() - waiting.ts <= WAITING_SECONDS_MAX ? waiting : null
    },
  }
}

function createTries({ attempts, starts }: Pick<SignInDeps, 'attempts' | 'starts'>) {
  return {
    /**
     * The counters of a try. `account`: an id, or a text for an unused address. Null: this address, or all unknown ones together, had too
     * many tries, and nothing is stored.
     */
    async budgetsOf(account: string, source: Source): Promise<readonly Budget[] | null> {
      const device = source.deviceOf(account)
      if (device !== null) return [{ key: `device ${device} of ${account}`, max: SOURCE_TRIES_MAX }]
      if (!starts.take({ address: source.address, person: null })) return null
      const own = { key: `address ${source.address} for ${account}`, max: SOURCE_TRIES_MAX }
      if (await attempts.isMarked(knownKey(account, source))) return [own]
      return [own, { key: `strangers for ${account}`, max: STRANGERS_TRIES_MAX }]
    },
    /** The outcome of a try; null: no tries are left for now. A try that could not be evaluated does not count. */
    async tried<T>(budgets: readonly Budget[] | null, evaluate: () => Promise<T>): Promise<T | null> {
      if (budgets === null) return null
      const taken: Budget[] = []
      const giveBack = () => Promise.all(taken.map(({ key }) => attempts.giveBack(key)))
      try {
        for (const budget of budgets) {
          if (!(await attempts.take(budget.key, budget.max))) {
            await giveBack()
            return null
          }
          taken.push(budget)
        }
        return await evaluate()
      } catch (err) {
        await giveBack()
        throw err
      }
    },
  }
}

const PURPOSE = 'sign-in'
const sealedAs = (page: string): string => `password accepted on ${page}`

function parseWaiting(keys: readonly Buffer[], name: string, sealed: string): Waiting | null {
  try {
    return JSON.parse(open(keys, name, sealed))
  } catch {
    return null
  }
}

const knownKey = (account: string, { address }: Source): string => `known address ${address} of ${account}`

/** A value for "no user", which can be no id. */
const NOBODY = ''
type Budget = { readonly key: string; readonly max: number }

async function authenticate(
  deps: SignInDeps,
  user: { readonly id: string; readonly passwordHash: string | null } | null,
  { password, folded, source }: { readonly password: string; readonly folded: string; readonly source: Source },
): Promise<string> {
  const stored = user?.passwordHash ?? null
  // Made for every try: reading it may wait for the database, and that time would tell which people exist.
  const decoy = await deps.decoys.of(folded)
  const checked = stored ?? decoy
  const check = async (): Promise<string> => {
    if (!(await verifySecret(password, checked)) || stored === null || user === null) return NOBODY
    await renewHash(deps, { id: user.id, password, stored })
    return user.id
  }
  return deps.secretSemaphore(check, source.address)
}

/** Replaces a hash of another system with our own, since the password is known now. The password stays, so no session ends. */
async function renewHash(
  deps: SignInDeps,
  { id, password, stored }: { readonly id: string; readonly password: string; readonly stored: string },
): Promise<void> {
  if (costOf(stored) === costOf(deps.decoyHash) || !isWholeSecret(password, stored)) return
  try {
    await deps.directory.replacePasswordHash(id, { stored, hash: await hashSecret(password) })
    deps.log.info({ event: 'password_rehashed', user: id })
  } catch (err) {
    deps.log.warn({ event: 'password_not_rehashed', user: id, err })
  }
}
