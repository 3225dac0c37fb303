/** The person's second factor, on the page that proves an account: a code, a recovery code or a passkey. */

import type { View } from '../../html/page.ts'
import { PAGE } from '../account/own-sign-in.ts'
import type { AccountVisit } from '../account/visit.ts'
import type { SignedIn, Waiting } from '../sign-in/sign-in.ts'
import type { LoginProblem } from '../sign-in/sign-in-pages.ts'
import type { UpstreamParts } from './deps.ts'

type Second = { readonly waiting: Waiting; readonly hidden: { readonly [name: string]: string } }
/** The page for which sealed values and challenges count. */
export const PROOF = 'proof of an account'

const turnOf = ({ account }: UpstreamParts, { req, res, frame }: AccountVisit, second: Second) => ({
  req,
  res,
  frame,
  ...second,
  purpose: { kind: 'account' } as const,
  at: PROOF,
  client: PAGE,
  source: account.devices.source(req),
})

export const askForSecond = (
  parts: UpstreamParts,
  visit: AccountVisit,
  second: Second,
  problem: LoginProblem | null = null,
): Promise<View> => parts.account.passkeySteps.askForSecond(turnOf(parts, visit, second), problem)

/** Returns a page to show, or the sign-in with both factors. */
export async function takeSecond(
  parts: UpstreamParts,
  visit: AccountVisit,
  { form, ...second }: Second & { readonly form: URLSearchParams },
): Promise<View | { readonly signedIn: SignedIn }> {
  const { account } = parts
  const turn = turnOf(parts, visit, second)
  const action = form.get('action')
  if (action === 'passkey') return account.passkeySteps.ask(turn)
  if (action === 'passkey_answer') return account.passkeySteps.take({ ...turn, answer: form.get('credential') ?? '' })
  if (action !== 'code') return askForSecond(parts, visit, second)
  const { waiting, client, source } = turn
  const outcome = await account.signIn.code({ waiting, code: form.get('code') ?? '', client, source })
  if ('problem' in outcome) return askForSecond(parts, visit, second, outcome.problem)
  const { left, ...signedIn } = outcome
  if (left !== undefined) account.notices.send(signedIn.accountId, 'codeUsed', { words: visit.frame.words, left })
  return { signedIn }
}
