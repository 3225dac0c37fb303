/** People who are invited by mail, and a browser in which they open the link. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { HeldRole } from '../../../../../pdp/engine/store/contract.ts'
import { DIRECTORY, ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import type { Membership, Tier } from '../../../../../pdp/shared/domain/membership.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, openWorld, PASSWORD, type World } from '../../harness.ts'
import { accountWith, type Mailbox, openMailbox } from '../mail/mailbox.ts'

export const PAGE = '/account/invitation'
export const INVITER = 'service:inviter'
export const DAY_MS = 86_400_000

export let mailbox: Mailbox
export let world: World
export let browser: Browser

/** Call it once in a file. */
export function useWorld(): void {
  beforeAll(async () => {
    mailbox = await openMailbox()
    world = await openWorld({ account: accountWith(mailbox) })
    await putInviter()
  })
  afterAll(async () => {
    await world.close()
    await mailbox.close()
  })
  beforeEach(() => {
    browser = createBrowser(world.issuer)
  })
  afterEach(async () => {
    world.time.offsetMs = 0
    await world.sql.query('delete from attempt') // no test shares its tries with the next
    mailbox.received.length = 0
  })
}

export const putInviter = (scope = 'directory:write roles:write', organization: string | null = null) =>
  world.putClient({
    id: 'inviter',
    organization,
    metadata: { client_name: 'Human <Resources>', grant_types: ['client_credentials'], scope },
  })

let people = 0
/** An address of nobody yet. */
export const newAddress = (): string => `invited${++people}@x.example`
/** A person of their own for each test, a member of nothing. */
export async function person(more: { emailVerified?: boolean } = {}): Promise<{ id: string; email: string }> {
  const email = newAddress()
  const id = email.slice(0, email.indexOf('@'))
  const user = { id, email, emailVerified: more.emailVerified ?? true, name: id.toUpperCase() }
  await world.directory.putUser({ ...user, passwordHash: cheapHash(PASSWORD) }, CONTEXT)
  return { id, email }
}

type Wanted = {
  readonly organization?: string
  readonly role?: Tier
  readonly roles?: readonly HeldRole[]
  readonly by?: string
  readonly language?: string
  readonly organizationName?: string
}
/** The link of the mail that was sent. */
export async function invite(email: string, wanted: Wanted = {}): Promise<string> {
  const { organization = 'acme', role = 'developer', roles = [], by = INVITER, language = 'en' } = wanted
  const { organizationName = 'Acme & Co' } = wanted
  const invited = await world.reach({ logs: [DIRECTORY, ENVIRONMENT, organization] }, (at) =>
    at.invitations.invite(
      { organization, organizationName, email, role, roles, language },
      { actor: by, requestId: '' },
    ),
  )
  invited.deliver()
  await world.identity.mailed()
  return mailbox.linkTo(email)
}

export type Shown = { readonly status: number; readonly html: string; readonly location: string | null }
const shown = async (response: Response): Promise<Shown> => ({
  status: response.status,
  html: await response.text(),
  location: response.headers.get('location'),
})
/** Opens a link as a browser does, up to the page, or to where the person must sign in. */
export async function open(link: string, by = browser): Promise<Shown> {
  const first = await by.send(link)
  const location = first.headers.get('location')
  return shown(location === null ? first : await by.send(location))
}
export const signIn = (email: string, by = browser, password = PASSWORD): Promise<Response> =>
  by.send(`/account/sign-in?to=${PAGE}`, { form: { action: 'login', email, password } })
/** Presses a button of the page that the browser shows now. */
export async function press(
  action: 'accept' | 'decline',
  form: { readonly [name: string]: string } = {},
  by = browser,
): Promise<Shown> {
  const page = await (await by.send(PAGE)).text()
  return shown(await by.send(PAGE, { form: { ...hiddenFields(page), action, ...form } }))
}
export const chosen = (password: string, repeated = password) => ({ name: 'New Person', password, repeated })

export async function membership(user: string, organization = 'acme'): Promise<Membership | null> {
  const { rows } = await world.store.rows([organization], [{ log: organization, kind: 'membership', user }])
  return rows.map((row) => ('membership' in row ? row.membership : null)).find((one) => one !== null) ?? null
}
export const grantsOf = async (user: string): Promise<readonly HeldRole[]> =>
  (await world.store.roleGrants({ subject: `user:${user}` }, { after: null, countMax: 10 })).map(({ app, role }) => ({
    app,
    role,
  }))
