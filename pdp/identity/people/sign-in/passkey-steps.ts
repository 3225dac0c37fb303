/** Signing in with a passkey, instead of the password or after it. All pages on which people sign in use these steps. */
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
  /** Options for the page that asks for a password, which any passkey can use; null: none can be given now. */
  offer(turn: Pick<Turn, 'req' | 'res' | 'at' | 'source'>): Promise<object | null>
  /** After the password: asks for the app's code, or for a passkey if the person has no app. */
  askForSecond(turn: Turn & { readonly waiting: Waiting }, problem: LoginProblem | null): Promise<View>
  /** `waiting`: the person whose password was right; null for a person who signs in without one. */
  ask(turn: Turn, problem?: LoginProblem | null): Promise<View>
  take(turn: Turn & { readonly answer: string }): Promise<View | { readonly signedIn: SignedIn }>
}
export type Turn = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly frame: Frame
  readonly purpose: Purpose
  /** The place for which the answer counts: the interaction, or the name of the page. */
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
    // Each request stores a record before anybody has signed in, so requests are limited.
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
