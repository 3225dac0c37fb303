/** The steps of signing in with a passkey, instead of the password or after it, for all pages where people sign in. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import type { Source } from '../../limits/devices.ts'
import type { Starts } from '../../limits/starts.ts'
import type { Passkeys } from '../factors/passkeys.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import { byPasskey } from './acr.ts'
import { passkeyPage } from './passkey-pages.ts'
import type { SignedIn, SignIn, Waiting } from './sign-in.ts'
import { codePage, type LoginProblem, outcomeOf, type Purpose } from './sign-in-pages.ts'

export type PasskeySteps = {
  /** Options for any passkey, on the page that asks for the password; null: none can be made now. */
  offer(turn: Pick<Turn, 'req' | 'res' | 'at' | 'source'>): Promise<object | null>
  /** Asks for the second factor after the password: for the app's code or, without an app, a passkey. */
  askForSecond(turn: Turn & { readonly waiting: Waiting }, problem: LoginProblem | null): Promise<View>
  /** Asks for a passkey. `waiting`: the person whose password was right; null: sign-in without a password. */
  ask(turn: Turn, problem?: LoginProblem | null): Promise<View>
  take(turn: Turn & { readonly answer: string }): Promise<View | { readonly signedIn: SignedIn }>
}
export type Turn = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly frame: Frame
  readonly purpose: Purpose
  /** The interaction, or the page's name, for which alone the answer counts. */
  readonly at: string
  readonly waiting: Waiting | null
  /** Fields that come back with the answer. */
  readonly hidden: { readonly [name: string]: string }
  /** The client that the log names. */
  readonly client: string
  readonly source: Source
}

/** A field of forms on which the password was already given. */
const SECOND = 'second'
export const isSecond = (form: URLSearchParams): boolean => form.has(SECOND)
const fieldsOf = ({ hidden, waiting }: Turn): Turn['hidden'] =>
  waiting === null ? hidden : { ...hidden, [SECOND]: 'yes' }

export function createPasskeySteps(deps: {
  readonly passkeys: Passkeys
  readonly secondFactor: Pick<SecondFactor, 'kinds'>
  readonly signIn: Pick<SignIn, 'admit'>
  readonly starts: Starts
  readonly clock: () => number
}): PasskeySteps {
  const { passkeys, secondFactor, signIn, starts, clock } = deps

  async function ask(turn: Turn, problem: LoginProblem | null = null): Promise<View> {
    const { frame, purpose, waiting, req, res, at, source } = turn
    const hidden = fieldsOf(turn)
    // A limit is needed here, because each request stores a record before any sign-in.
    const mayAsk = starts.take({ address: source.address, person: waiting?.accountId ?? null })
    const options = mayAsk ? await passkeys.request(waiting?.accountId ?? null, { req, res, page: at }) : null
    const hasApp = waiting !== null && (await secondFactor.kinds(waiting.accountId)).app
    const shown = mayAsk ? problem : 'tooMany'
    const view = { purpose, hidden, options, hasApp, isSecond: waiting !== null, problem: shown }
    return { outcome: outcomeOf(shown), page: passkeyPage(frame, view) }
  }

  return {
    async offer({ req, res, at, source }) {
      const mayOffer = passkeys.isPossible && starts.take({ address: source.address, person: null })
      return mayOffer ? passkeys.request(null, { req, res, page: at }) : null
    },
    ask,
    async askForSecond(turn, problem) {
      const { app, passkey } = await secondFactor.kinds(turn.waiting.accountId)
      const canAsk = passkey && passkeys.isPossible
      if (canAsk && !app) return ask(turn, problem)
      const { frame, purpose } = turn
      const hidden = fieldsOf(turn)
      return { outcome: outcomeOf(problem), page: codePage(frame, { purpose, hidden, problem, passkey: canAsk }) }
    },
    async take(turn) {
      const { req, at, waiting, answer, client, source } = turn
      const ts = Math.floor(clock() / 1_000)
      const proven = await passkeys.prove(waiting?.accountId ?? null, { req, page: at, answer })
      if (proven === null) return ask(turn, 'wrongPasskey')
      const by = byPasskey({ synced: proven.synced, afterPassword: waiting !== null })
      return { signedIn: await signIn.admit(waiting ?? { accountId: proven.user, ts }, { by, client, source }) }
    },
  }
}
