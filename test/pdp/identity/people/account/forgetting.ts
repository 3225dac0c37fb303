/** People who forgot their password, with a mailbox, and a browser on the pages for it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import type { Transaction } from '../../../../../pdp/engine/store/directory.ts'
import { lockJournal } from '../../../../../pdp/engine/store/journal-lock.ts'
import { DIRECTORY } from '../../../../../pdp/shared/domain/journal.ts'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { CONTEXT, openWorld, type World } from '../../harness.ts'
import { accountWith, type Mailbox, openMailbox } from '../mail/mailbox.ts'

export const NEW_PASSWORD = 'quite another battery staple'
export const HOUR_MS = 3_600_000
export const FORGOTTEN = '/account/forgotten'
export const RESET = '/account/reset'

export let mailbox: Mailbox
export let world: World
export let browser: Browser

/** Call it once in a file. */
export function useWorld(options: { host?: 'localhost' } = {}): void {
  beforeAll(async () => {
    mailbox = await openMailbox()
    world = await openWorld({ ...options, account: accountWith(mailbox) })
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
    mailbox.refuse = false
  })
}

/** A person of their own for each test. */
let people = 0
export async function person(
  more: { emailVerified?: boolean; withPassword?: false } = {},
): Promise<{ id: string; email: string }> {
  const id = `f${++people}`
  const email = `${id}@x.example`
  const hash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
  await world.directory.putUser(
    {
      ...{ id, email, emailVerified: more.emailVerified ?? true, name: id },
      passwordHash: more.withPassword === false ? null : hash,
    },
    CONTEXT,
  )
  await world.store.write(
    'acme',
    [{ kind: 'membership', user: id, membership: { role: 'viewer', status: 'active' } }],
    { context: CONTEXT },
  )
  return { id, email }
}
/** Does something else while a change of the person waits for the directory. */
export async function meanwhile(
  other: (tx: Transaction) => Promise<unknown>,
  change: () => Promise<Response>,
): Promise<Response> {
  let changing: Promise<Response> | undefined
  await world.sql.transaction(async (tx) => {
    await lockJournal(tx, DIRECTORY)
    changing = change()
    const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    await expect.poll(() => world.sql.query(waiting), { timeout: 20_000, interval: 5 }).toHaveLength(1)
    await other(tx)
  })
  if (changing === undefined) throw new TypeError('nothing was changed')
  return changing
}
/** Ends all their sign-ins. */
export const signedOutMeanwhile = (user: string, change: () => Promise<Response>): Promise<Response> =>
  meanwhile((tx) => world.identity.sessions.endUser(tx, user, CONTEXT), change)

export async function ask(email: string, by = browser): Promise<Response> {
  const response = await by.send(FORGOTTEN, { form: { email } })
  await world.identity.mailed()
  return response
}
/** Opens a link as a browser does, up to the page. */
export async function open(link: string, by = browser): Promise<{ status: number; html: string; url: string }> {
  let response = await by.send(link)
  let url = link
  const location = response.headers.get('location')
  if (location !== null) {
    url = location
    response = await by.send(location)
  }
  return { status: response.status, html: await response.text(), url }
}
export const choose = (password: string, by = browser, repeated = password): Promise<Response> =>
  by.send(RESET, { form: { password, repeated } })
