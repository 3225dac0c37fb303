/** People who set up what proves who they are, on the pages of their account. */
import { codeOf } from '../../../../support/authenticator.ts'
import { type Browser, hiddenFields } from '../../../../support/browser.ts'
import { PASSWORD } from '../../harness.ts'
import { browser, mailbox, person, world } from '../account/forgetting.ts'

export const PAGE = '/account/authenticator'
const SIGN_IN = '/account/sign-in?to=/account/authenticator'

export const signIn = (email: string, by: Browser = browser): Promise<Response> =>
  by.send(SIGN_IN, { form: { action: 'login', email, password: PASSWORD } })
export const giveCode = (html: string, code: string, by: Browser = browser): Promise<Response> =>
  by.send(SIGN_IN, { form: { ...hiddenFields(html), action: 'code', code } })

/** A new person, signed in by password. */
export async function signedIn(by: Browser = browser): Promise<{ id: string; email: string; by: Browser }> {
  const { id, email } = await person()
  await signIn(email, by)
  return { id, email, by }
}

/** A new person with an authenticator that was just set up in this browser. */
export async function added(
  by: Browser = browser,
): Promise<{ id: string; email: string; secret: string; codes: readonly string[] }> {
  const { id, email } = await signedIn(by)
  const html = await (await by.send(PAGE)).text()
  const secret = secretIn(html)
  const code = codeOf(secret, Date.now() + world.time.offsetMs)
  const done = await by.send(PAGE, { form: { ...hiddenFields(html), action: 'confirm', code } })
  return { id, email, secret, codes: codesIn(await done.text()) }
}

export const secretIn = (html: string): string =>
  (/<code class="key">([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '')
export const codesIn = (html: string): readonly string[] =>
  [...html.matchAll(/<li><code>([A-Z2-7-]{19})<\/code>/g)].map(([, code = '']) => code)
/** Texts of the mails to this address, in one line each. */
export const mailsTo = (address: string): readonly string[] =>
  mailbox.received.filter(({ to }) => to.includes(address)).map(({ text }) => text.replaceAll(/\s+/g, ' '))
export async function codesLeft(user: string): Promise<number> {
  const [row] = await world.sql.query<{ count: number }>(
    'select count(*)::int as count from recovery_code where user_id = $1',
    [user],
  )
  return row?.count ?? 0
}
