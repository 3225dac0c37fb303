/** Somebody who uses the console without a real browser: signs in, reads pages and sends forms. */
import { emailOf, PASSWORD, type World } from '../../../console/world.ts'
import { type Browser, createBrowser } from '../../../support/browser.ts'

export type Shown = { readonly status: number; readonly headers: Headers; readonly text: string }
export async function get(browser: Browser, path: string): Promise<Shown> {
  const response = await browser.send(path)
  return { status: response.status, headers: response.headers, text: await response.text() }
}
/** As a browser goes from the console to the sign-in page and back, one redirect after the other. */
export async function signedInTo(
  world: Pick<World, 'issuer'>,
  person: string,
  email = emailOf(person),
): Promise<Browser> {
  const browser = createBrowser(world.issuer)
  let at = '/console'
  for (let hop = 0; hop < 12; hop++) {
    const response = await browser.send(at)
    const location = response.headers.get('location')
    const text = await response.text()
    if (location !== null) at = new URL(location, new URL(at, world.issuer)).href
    else if (!text.includes('data-step="login"')) return browser
    else {
      const sent = await browser.send(at, { form: { email, password: PASSWORD, action: 'password' } })
      at = new URL(sent.headers.get('location') ?? '', new URL(at, world.issuer)).href
    }
  }
  throw new Error(`${person} did not get in`)
}
export const csrfIn = (text: string): string => /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? ''
export const post = async (
  browser: Browser,
  path: string,
  form: { readonly [name: string]: string },
  headers = {},
): Promise<Shown> => {
  const response = await browser.send(path, {
    form,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
