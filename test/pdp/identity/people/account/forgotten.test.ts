import { describe, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { createFlows } from '../../flows.ts'
import { CONTEXT, PASSWORD } from '../../harness.ts'
import {
  ask,
  browser,
  choose,
  FORGOTTEN,
  HOUR_MS,
  mailbox,
  NEW_PASSWORD,
  open,
  person,
  RESET,
  useWorld,
  world,
} from './forgetting.ts'

useWorld()
async function canSignIn(email: string, password: string): Promise<boolean> {
  const form = { action: 'login', email, password }
  const path = (await browser.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
  return (await browser.send(path, { form })).status === 303
}

const codeIn = (page: string): string => /<p class="code">([^<]*)</.exec(page)?.[1] ?? ''
const give = (code: string, by: Browser): Promise<Response> => by.send(RESET, { form: { code } })

describe('who forgot a password', () => {
  test('gets a link by mail, chooses another with it, and signs in with that one alone', async () => {
    const { id, email } = await person({ emailVerified: false })
    expect(await (await browser.send(FORGOTTEN)).text()).toContain('<label for="email">')
    const asked = await ask(email)
    expect(asked.status).toBe(200)
    const opened = await open(mailbox.linkTo(email))
    expect(opened.html).toContain(email)
    const done = await choose(NEW_PASSWORD)
    expect([done.status, await done.text()]).toEqual([200, expect.stringContaining('Your password is set')])
    expect(await canSignIn(email, PASSWORD)).toBe(false)
    expect(await canSignIn(email, NEW_PASSWORD)).toBe(true)
    expect(await world.directory.user(id)).toMatchObject({ emailVerified: true })
  })

  test('ends all sessions and tokens of before by choosing another, on the next call', async () => {
    const { id, email } = await person()
    const before = await createFlows(world).code({ person: id, organization: 'acme', scope: 'openid', browser })
    expect((await world.identity.introspect(before.tokens.access_token)).active).toBe(true)
    await ask(email)
    await open(mailbox.linkTo(email))
    await choose(NEW_PASSWORD)
    expect((await world.identity.introspect(before.tokens.access_token)).active).toBe(false)
    const entries = await world.sql.query(`select change, actor from change_log where actor = $1 order by written_at`, [
      `user:${id}`,
    ])
    expect(entries).toContainEqual({ change: { kind: 'user', id, op: 'write' }, actor: `user:${id}` })
    await numberEvents(world.sql)
    const [event] = await world.sql.query<{ payload: object }>(
      `select payload from outbox where type = 'credential.changed' and payload ->> 'user' = $1 order by seq desc limit 1`,
      [id],
    )
    expect(event?.payload).toMatchObject({ credential: 'password', change: 'update', initiating_entity: 'user' })
  })

  test('finds the way back to the sign-in of the application, or else to the account', async () => {
    const page = (await browser.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
    const { pathname } = new URL(page, world.issuer)
    const link = /href="(\/account\/forgotten[^"]*)"/.exec(await (await browser.send(page)).text())?.[1] ?? ''
    for (const form of [undefined, { email: 'nobody@x.example' }]) {
      const html = await (await browser.send(link.replaceAll('&amp;', '&'), form && { form })).text()
      expect(html).toContain(`<a href="${pathname}">Sign in</a>`)
    }
    for (const odd of ['', '?sign_in=//evil.example', '?sign_in=..%2F..%2Faccount'])
      expect(await (await browser.send(FORGOTTEN + odd)).text()).toContain('<a href="/account">Sign in</a>')
  })

  test('comes back to the sign-in of the application with the new password, in its own browser alone', async () => {
    const { email } = await person()
    const page = (await browser.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
    const { pathname } = new URL(page, world.issuer)
    const from = `${FORGOTTEN}?sign_in=${pathname.split('/').at(-1)}`
    const onward = async (by: Browser): Promise<string> =>
      /class="act" href="([^"]*)"/.exec(await (await choose(NEW_PASSWORD, by)).text())?.[1] ?? ''
    const forgets = async (path: string): Promise<string> => {
      const response = await browser.send(path, { form: { email } })
      await world.identity.mailed()
      return codeIn(await response.text())
    }

    await forgets(from)
    await open(mailbox.linkTo(email))
    expect(await onward(browser)).toBe(`${world.issuer}${pathname}`)
    const signedIn = await browser.send(pathname, { form: { action: 'login', email, password: NEW_PASSWORD } })
    expect(signedIn.status).toBe(303)

    const code = await forgets(from)
    const other = createBrowser(world.issuer)
    await open(mailbox.linkTo(email), other)
    await give(code, other)
    expect(await onward(other)).toBe(`${world.issuer}/account`)

    for (const path of [FORGOTTEN, `${FORGOTTEN}?sign_in=..%2F..%2Fevil`]) {
      await forgets(from)
      await forgets(path)
      await open(mailbox.linkTo(email))
      expect(await onward(browser)).toBe(`${world.issuer}/account`)
    }
  })

  test('leaves log lines that name the request', async () => {
    const { email } = await person()
    await browser.send(FORGOTTEN, { form: { email }, headers: { 'x-request-id': 'asked-7' } })
    await world.identity.mailed()
    const lines = world.log.filter((line) => line.includes('password_reset_asked'))
    expect(lines.at(-1)).toContain('"request_id":"asked-7"')
  })

  test('gets in although strangers used up the tries of the account', async () => {
    const { email } = await person()
    const stranger = createBrowser(world.issuer)
    for (let i = 0; i < 12; i++) {
      const path = (await stranger.send(createFlow(world).authorizeUrl({}))).headers.get('location') ?? ''
      await stranger.send(path, { form: { action: 'login', email, password: `guess ${i}` } })
    }
    expect(await canSignIn(email, PASSWORD)).toBe(false)
    await ask(email)
    await open(mailbox.linkTo(email))
    await choose(NEW_PASSWORD)
    expect(await canSignIn(email, NEW_PASSWORD)).toBe(true)
  })
})

describe('a link', () => {
  test('is good once', async () => {
    const { email } = await person()
    await ask(email)
    const link = mailbox.linkTo(email)
    await open(link)
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
    expect((await open(link)).status).toBe(400)
    expect((await choose(PASSWORD)).status).toBe(400)
    expect(await canSignIn(email, NEW_PASSWORD)).toBe(true)
  })

  test('is good for one of 12 that use it at the same time', async () => {
    const { email } = await person()
    await ask(email)
    await open(mailbox.linkTo(email))
    const passwords = Array.from({ length: 12 }, (_, i) => `password of the number ${i}`)
    const statuses = (await Promise.all(passwords.map((password) => choose(password)))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(await canSignIn(email, passwords[statuses.indexOf(200)] ?? '')).toBe(true)
  })

  test('takes all other links of the person with it', async () => {
    const { email } = await person()
    await ask(email)
    const first = mailbox.linkTo(email)
    await ask(email)
    await open(mailbox.linkTo(email))
    await choose(NEW_PASSWORD)
    expect((await open(first)).status).toBe(400)
  })

  test('is of no use in another browser without the code of the first, and none is spent by trying', async () => {
    const { email } = await person()
    await ask(email)
    const link = mailbox.linkTo(email)
    const thief = createBrowser(world.issuer)
    expect((await open(link, thief)).html).toContain('another browser')
    expect(await (await choose('the password of a thief', thief)).text()).toContain('name="code"')
    // Now it has a cookie too, and a code, but another one.
    const own = codeIn(await (await ask('nobody@x.example', thief)).text())
    expect((await open(link, thief)).html).toContain('name="code"')
    expect((await give(own, thief)).status).toBe(400)
    expect(await (await choose('the password of a thief', thief)).text()).toContain('name="code"')
    await open(link)
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
    expect(await canSignIn(email, NEW_PASSWORD)).toBe(true)
  })

  test('works in another browser with the code that the first one shows, and from then on in that one alone', async () => {
    const { email } = await person()
    const code = codeIn(await (await ask(email)).text())
    const link = mailbox.linkTo(email)
    const phone = createBrowser(world.issuer)
    await open(link, phone)
    expect(await (await give(code.replace(' ', ''), phone)).text()).toContain('name="repeated"')
    expect((await open(link)).html).toContain('name="code"')
    expect((await choose(NEW_PASSWORD, phone)).status).toBe(200)
    expect(await canSignIn(email, NEW_PASSWORD)).toBe(true)
    expect((await open(link, phone)).status).toBe(400)
  })

  test('takes five codes, and no more afterwards, not even the right one', async () => {
    const { email } = await person()
    const code = codeIn(await (await ask(email)).text())
    const thief = createBrowser(world.issuer)
    await open(mailbox.linkTo(email), thief)
    for (const wrong of [
      '',
      '1',
      'abc',
      '0'.repeat(4_000),
      code.replace(/.$/, (digit) => String((Number(digit) + 1) % 10)),
    ])
      expect((await give(wrong, thief)).status).toBe(400)
    expect((await give(code, thief)).status).toBe(429)
    expect(await (await choose('the password of a thief', thief)).text()).toContain('name="code"')
    await open(mailbox.linkTo(email))
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
  })

  test('shows a code to everybody who asks, also for an address that nobody has', async () => {
    const code = codeIn(await (await ask('nobody@x.example')).text())
    expect(code).toMatch(/^[0-9]{4} [0-9]{4}$/)
    expect(codeIn(await (await ask('nobody@x.example', createBrowser(world.issuer))).text())).not.toBe(code)
  })

  test('cannot be moved by the page of another site', async () => {
    const { email } = await person()
    const code = codeIn(await (await ask(email)).text())
    const other = createBrowser(world.issuer)
    await open(mailbox.linkTo(email), other)
    const sent = await other.send(RESET, { form: { code }, headers: { origin: 'https://evil.example' } })
    expect(sent.status).toBe(400)
    expect(await (await choose(NEW_PASSWORD, other)).text()).toContain('name="code"')
  })

  test('is not used up by programs that open the links of mails', async () => {
    const { email } = await person()
    await ask(email)
    const link = mailbox.linkTo(email)
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET'])
      await fetch(world.issuer + link, { method, redirect: 'follow' })
    await open(link)
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
  })

  test('ends after half an hour', async () => {
    const { email } = await person()
    await ask(email)
    const link = mailbox.linkTo(email)
    world.time.offsetMs += HOUR_MS / 2 - 5_000
    expect((await open(link)).status).toBe(200)
    world.time.offsetMs += 10_000
    expect((await choose(NEW_PASSWORD)).status).toBe(400)
    expect((await open(link)).status).toBe(400)
    expect(await canSignIn(email, PASSWORD)).toBe(true)
  })

  test.each([
    ['altered', (token: string) => (token.startsWith('A') ? 'B' : 'A') + token.slice(1)],
    ['cut', (token: string) => token.slice(0, -1)],
    ['lengthened', (token: string) => `${token}A`],
    ['empty', () => ''],
    ['a wildcard', () => '%25'],
    ['two lines', () => 'a%0d%0aset-cookie:%20x=y'],
    ['its own digest', (token: string) => Buffer.from(token).toString('hex')],
  ])('that is %s opens nothing', async (_, alter) => {
    const { email } = await person()
    await ask(email)
    const [path, token = ''] = mailbox.linkTo(email).split('token=')
    const opened = await open(`${path}token=${alter(token)}`)
    expect(opened.status).toBe(400)
    expect((await choose(NEW_PASSWORD)).status).toBe(400)
    expect(await canSignIn(email, PASSWORD)).toBe(true)
  })

  test('is for the address that it was sent to, not for one that the person got since', async () => {
    const { id, email } = await person()
    await ask(email)
    await open(mailbox.linkTo(email))
    await world.directory.putUser({ id, email: `new-${email}`, emailVerified: false, name: id }, CONTEXT)
    expect((await choose(NEW_PASSWORD)).status).toBe(400)
    expect(await world.directory.user(id)).toMatchObject({ emailVerified: false })
  })

  test('leaves its token in no page, no log, no later address, and no table', async () => {
    const { email } = await person()
    await ask(email)
    const token = mailbox.linkTo(email).split('token=')[1] ?? ''
    expect(token).toMatch(/^[\w-]{43}$/)
    const redirected = await browser.send(mailbox.linkTo(email))
    expect(redirected.status).toBe(303)
    expect(redirected.headers.get('location')).toBe(`${world.issuer}${RESET}`)
    expect(redirected.headers.get('referrer-policy')).toBe('no-referrer')
    expect(redirected.headers.getSetCookie().join()).toMatch(/HttpOnly; SameSite=Lax/)
    const page = await browser.send(RESET)
    expect(await page.text()).not.toContain(token)
    expect(page.headers.get('cache-control')).toBe('no-store')
    await choose(NEW_PASSWORD)
    expect(world.log.join()).not.toContain(token)
    const stored = await world.sql.query<{ text: string }>('select t::text as text from mailed_token t')
    expect(stored.map(({ text }) => text).join()).not.toContain(token)
  })
})

describe('a new password', () => {
  test.each([
    ['short', 'seven77', 'seven77', 'at least eight'],
    ['empty', '', '', 'at least eight'],
    ['long', 'x'.repeat(257), 'x'.repeat(257), 'at most 256'],
    ['not the same twice', NEW_PASSWORD, `${NEW_PASSWORD}!`, 'differ'],
    ['everybody’s', 'Password123', 'Password123', 'Many people'],
  ])('that is %s is refused, and the link stays good', async (_, password, repeated, words) => {
    const { email } = await person()
    await ask(email)
    await open(mailbox.linkTo(email))
    const refused = await choose(password, browser, repeated)
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(words)])
    expect((await choose(NEW_PASSWORD)).status).toBe(200)
  })

  test('that is the address itself is refused', async () => {
    const { email } = await person()
    await ask(email)
    await open(mailbox.linkTo(email))
    expect((await choose(email.toUpperCase())).status).toBe(400)
  })

  test('is not taken from a form of another site', async () => {
    const { email } = await person()
    await ask(email)
    await open(mailbox.linkTo(email))
    const form = { password: NEW_PASSWORD, repeated: NEW_PASSWORD }
    const sent = await browser.send(RESET, { form, headers: { origin: 'https://evil.example' } })
    expect(sent.status).toBe(400)
    expect(await canSignIn(email, PASSWORD)).toBe(true)
  })
})
