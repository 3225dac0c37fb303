/** People with passkeys, and the pages that ask for them. */
import { unescapeHtml } from '../../../../../pdp/shared/base/html.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { PASSWORD } from '../../harness.ts'
import { browser, world } from '../account/forgetting.ts'
import { codesIn, signedIn } from './own-factors.ts'
import { createTestPasskey, type TestPasskey, type Wrong } from './test-passkey.ts'

export const PASSKEYS = '/account/passkeys'
export const SIGN_IN = '/account/sign-in?to=/account/passkeys'

export type Asked = {
  readonly html: string
  readonly options: {
    readonly challenge: string
    readonly rpId?: string
    readonly rp?: { readonly id: string }
    readonly user?: { readonly id: string; readonly name: string }
    readonly userVerification?: string
    readonly allowCredentials?: readonly { readonly id: string }[]
    readonly excludeCredentials?: readonly { readonly id: string }[]
  }
}
export function askedBy(html: string): Asked {
  const given = /data-options="([^"]*)"/.exec(html)?.[1]
  if (given === undefined) throw new Error(`no passkey is asked for: ${html.slice(-800)}`)
  return { html, options: JSON.parse(unescapeHtml(given)) }
}
/** Of the form that asks for the passkey. */
export const formFields = (html: string): { readonly [name: string]: string } =>
  hiddenFields(html.slice(html.indexOf(' data-passkey=')))

export const stranger = (): Browser => createBrowser(world.issuer)
export const newPasskey = (): TestPasskey => createTestPasskey(world.issuer)

export const creation = async (by: Browser = browser): Promise<Asked> => askedBy(await (await by.send(PASSKEYS)).text())
export async function give(
  passkey: TestPasskey,
  of: { by?: Browser; asked?: Asked; wrong?: Wrong; form?: { [name: string]: string } } = {},
): Promise<Response> {
  const by = of.by ?? browser
  const asked = of.asked ?? (await creation(by))
  const credential = passkey.created(asked.options, of.wrong)
  return by.send(PASSKEYS, { form: { ...formFields(asked.html), name: 'Laptop', credential, ...of.form } })
}

/** A new person who is signed in and has just added a passkey. */
export async function withPasskey(by: Browser = browser) {
  const person = await signedIn(by)
  const passkey = newPasskey()
  const codes = codesIn(await (await give(passkey, { by })).text())
  return { ...person, passkey, codes }
}

/** Before anybody is known. */
export const request = async (by: Browser, path = SIGN_IN): Promise<Asked> =>
  askedBy(await (await by.send(path, { form: { action: 'passkey' } })).text())
/** After the password. */
export const requestSecond = async (by: Browser, email: string, path = SIGN_IN): Promise<Asked> =>
  askedBy(await (await by.send(path, { form: { action: 'login', email, password: PASSWORD } })).text())
export const answer = (by: Browser, asked: Asked, credential: string, path = SIGN_IN): Promise<Response> =>
  by.send(path, { form: { ...formFields(asked.html), credential } })
