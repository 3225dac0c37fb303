/** Two identity services: people of the second one, a real OpenID provider, sign in at the first. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { hashGeneratedSecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import type { ProviderDocument } from '../../../../../pdp/identity/people/upstream-providers/providers.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { answerPage } from '../../../../support/sign-in.ts'
import { CONTEXT, openWorld, PASSWORD, SECRET, type World } from '../../harness.ts'

export const PROVIDER = 'other'
export const PROVIDERS = '/account/providers'
export const PROOF = '/account/proof'
export const CALLBACK = `${PROVIDERS}/${PROVIDER}`

/** Where people sign in, and the provider of others. */
export let here: World
export let other: World
/** One person's browser, as each of the two sees it. */
export let mine: Browser
export let theirs: Browser

/** Call it once in a file. */
export function useWorlds(): void {
  beforeAll(async () => {
    ;[here, other] = await Promise.all([openWorld(), openWorld()])
    await other.putClient({
      id: 'portal',
      metadata: { redirect_uris: [here.issuer + CALLBACK], scope: 'openid email profile', client_name: 'Portal' },
      secretHash: hashGeneratedSecret(SECRET),
    })
  })
  afterAll(async () => {
    await here.close()
    await other.close()
  })
  beforeEach(async () => {
    ;[mine, theirs] = newBrowsers()
    await provide()
  })
  afterEach(async () => {
    here.time.offsetMs = 0
    for (const { sql } of [here, other]) await sql.query('delete from attempt')
  })
}
export const newBrowsers = (): [Browser, Browser] => [createBrowser(here.issuer), createBrowser(other.issuer)]

export const document = (more: Partial<ProviderDocument> = {}): ProviderDocument => ({
  ...{ issuer: other.issuer, client_id: 'portal', name: 'Other & Co' },
  ...more,
})
export const provide = (more: Partial<ProviderDocument> = {}): Promise<boolean> =>
  here.identity.identityProviders.put(PROVIDER, { ...document(more), secret: SECRET }, CONTEXT)

let people = 0
type Wanted = { readonly email?: string; readonly emailVerified?: boolean; readonly password?: null }
/** A person of one of the two, of their own for each test. */
export async function person(at: World, wanted: Wanted = {}): Promise<{ id: string; email: string }> {
  const id = `p${++people}`
  const email = wanted.email ?? `${id}@x.example`
  const passwordHash = wanted.password === null ? null : cheapHash(PASSWORD)
  await at.directory.putUser(
    { id, email, emailVerified: wanted.emailVerified ?? true, name: id, passwordHash },
    CONTEXT,
  )
  return { id, email }
}
export const join = (user: string, organization = 'acme') =>
  here.store.write(organization, [{ kind: 'membership', user, membership: { role: 'viewer', status: 'active' } }], {
    context: CONTEXT,
  })

export type Page = { readonly status: number; readonly html: string; readonly location: string }
export const read = async (response: Response): Promise<Page> => ({
  status: response.status,
  html: await response.text(),
  location: response.headers.get('location') ?? '',
})
export const get = async (path: string, by = mine): Promise<Page> => read(await by.send(path))
export const post = async (path: string, form: { readonly [name: string]: string }, by = mine): Promise<Page> =>
  read(await by.send(path, { form }))

/** The form of a provider's button on a page. */
export function button(html: string, id = PROVIDER): { readonly [name: string]: string } {
  const forms = html.split('<form ').map(hiddenFields)
  const found = forms.find((fields) => fields.provider === id)
  if (found === undefined) throw new Error(`no button of ${id} in ${html.slice(-800)}`)
  return found
}
/** Presses the button, and returns where the browser is sent. */
export async function leave(path = '/account/sign-in?to=/account', by = mine): Promise<string> {
  const sent = await post(PROVIDERS, button((await get(path, by)).html), by)
  if (sent.location === '') throw new Error(`not sent away: ${sent.status} ${sent.html.slice(-600)}`)
  return sent.location
}
/** Signs in there; the address at which the browser comes back. */
export const signInThere = async (url: string, email: string, by = theirs): Promise<string> =>
  (await by.follow(url, (page) => answerPage(page, { email, password: PASSWORD, chosenOrganization: 'acme' }))).href

/** There and back: the answer to the return. */
export async function travel(
  email: string,
  { path, by = [mine, theirs] }: { path?: string; by?: [Browser, Browser] } = {},
): Promise<Page> {
  return get(await signInThere(await leave(path, by[0]), email, by[1]), by[0])
}
/** Whose account the browser shows; null when nobody is signed in. */
export async function signedInAs(by = mine): Promise<string | null> {
  return /<p><strong>([^<]+)<\/strong><\/p>/.exec((await get('/account', by)).html)?.[1] ?? null
}
export const signInHere = (email: string, by = mine): Promise<Page> =>
  post(`/account/sign-in?to=${PROVIDERS}`, { action: 'login', email, password: PASSWORD }, by)
export const prove = (email: string, password = PASSWORD, by = mine): Promise<Page> =>
  post(PROOF, { action: 'login', email, password }, by)
/** Links of a person, without the issuer. */
export async function linksOf(user: string): Promise<readonly string[]> {
  const rows = await here.sql.query<{ subject: string }>(
    'select subject from foreign_identity where user_id = $1 order by subject',
    [user],
  )
  return rows.map(({ subject }) => subject)
}
