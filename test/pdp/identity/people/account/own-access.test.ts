/** The page of everything that a person can reach in one of their organizations. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../../../../pdp/identity/html/words/words.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { CONTEXT, openWorld, PASSWORD, type World } from '../../harness.ts'

const MODEL = `model
  schema 1.1
type user
type group
  relations
    define member: [user, group#member]
type folder
  relations
    define viewer: [user, group#member]
type doc
  relations
    define parent: [folder]
    define owner: [user, user:*]
    define viewer: [user, group#member] or owner or viewer from parent
`
const HOSTILE = '\u202etxt.<img/src=x>'
let world: World
let browser: Browser
/** How late each list of the PDP is. */
let lateMs = 0

beforeAll(async () => {
  world = await openWorld({
    pdp: (pdp) => ({
      ...pdp,
      async listResources(question) {
        if (question.type !== 'group') await delay(lateMs)
        return pdp.listResources(question)
      },
    }),
  })
  const app = { audiences: [], permissions: {}, roles: {}, model: MODEL }
  await world.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest: { app: 'docs', ...app } }], { context: CONTEXT })
  await relate('acme', [
    ...['doc:own#owner@user:ann', 'doc:plan#viewer@group:staff#member', 'doc:secret#owner@user:eve'],
    ...['group:writers#member@user:ann', 'group:staff#member@group:writers#member', 'group:chiefs#member@user:eve'],
    ...['folder:all#viewer@user:ann', 'doc:below#parent@folder:all', `doc:${HOSTILE}#viewer@user:ann`],
  ])
  await relate('beta', ['doc:elsewhere#owner@user:ann', 'doc:gone#owner@user:bob'])
})
afterAll(() => world.close())
beforeEach(() => {
  browser = createBrowser(world.issuer)
})
afterEach(() => {
  lateMs = 0
})

async function relate(organization: string, texts: readonly string[]): Promise<void> {
  const changes = texts.map((text): Change => {
    const [object = '', relation = '', subject = ''] = text.split(/#(?=(?:owner|viewer|member|parent)@)|@/)
    return { kind: 'tuple', op: 'write', tuple: { object, relation, subject, expiresAtMs: null } }
  })
  await world.store.write(organization, changes, { context: CONTEXT })
}
const signIn = (id: string) =>
  browser.send('/account/sign-in', { form: { action: 'login', email: `${id}@x.example`, password: PASSWORD } })
async function see(organization: string | null, language = 'en'): Promise<{ status: number; text: string }> {
  const query = organization === null ? '' : `?${new URLSearchParams({ organization })}`
  const answer = await browser.send(`/account/access${query}`, { headers: { 'accept-language': language } })
  return { status: answer.status, text: (await answer.text()).replaceAll(/<\/?bdi>/g, '') }
}

describe('a person', () => {
  test('sees what they can reach by type and relation, how, and their groups, and nothing of others', async () => {
    await signIn('ann')
    expect(await (await browser.send('/account')).text()).toContain('href="/account/access?organization=acme"')
    const { status, text } = await see('acme')
    expect(status).toBe(200)
    expect(text).toContain('<p><strong>Acme &amp; Co</strong> (acme)</p>')
    expect(text).toContain(
      '<strong>group · member</strong>: 2<br><small>group:staff, group:writers<br>By: group:writers, directly.</small>',
    )
    expect(text).toContain('<strong>doc · owner</strong>: 1<br><small>doc:own<br>By: directly.</small>')
    expect(text).toMatch(/doc · viewer<\/strong>: 4<br>/)
    expect(text).toContain('folder:all')
    expect(text).toContain('By: a role.')
    for (const foreign of ['secret', 'chiefs', 'eve', 'user:', 'elsewhere', 'Not everything'])
      expect([foreign, text.includes(foreign)]).toEqual([foreign, false])
  })

  test('reads hostile names as text, with what is invisible in them', async () => {
    await relate('acme', [`doc:${HOSTILE}#owner@user:ann`])
    await signIn('ann')
    const { text } = await see('acme')
    expect(text).toContain('doc:U+202Etxt.&lt;img/src=x&gt;')
    expect(text).not.toMatch(/<img|\u202e|<script/)
  })

  test('chooses one of several organizations, and sees each by itself', async () => {
    await signIn('ann')
    const { status, text } = await see(null)
    expect([status, text.includes('organization=acme'), text.includes('organization=beta')]).toEqual([200, true, true])
    expect(text).not.toContain('doc:')
    const beta = await see('beta')
    expect([beta.text.includes('doc:elsewhere'), beta.text.includes('doc:own')]).toEqual([true, false])
  })

  test('with a single organization sees it at once', async () => {
    await signIn('eve')
    expect((await see(null)).text).toContain('doc:secret')
  })

  test.each([
    ['suspended there', 'bob', 'acme'],
    ['invited there', 'dan', 'acme'],
    ['a member elsewhere only', 'eve', 'beta'],
    ['asking for an organization below', 'ann', 'acme-eu'],
    ['asking for none that exists', 'ann', 'nowhere'],
    ['asking for an empty name', 'ann', ''],
    ['asking for a name too long', 'ann', 'a'.repeat(1_024)],
    ['asking for markup', 'ann', '<img src=x>'],
    ['asking for the journal of all', 'ann', ENVIRONMENT],
  ])('%s sees nothing', async (_, id, organization) => {
    await signIn(id)
    const { status, text } = await see(organization)
    expect([status, text.includes('You are not an active member of this organization.')]).toEqual([400, true])
    expect(text).not.toMatch(/doc:|group|<img/)
  })

  test('in no organization reads so', async () => {
    await signIn('cy')
    expect((await see(null)).text).toContain('You are an active member of no organization.')
  })

  test('who was suspended or blocked meanwhile sees nothing any more', async () => {
    await signIn('bob')
    expect((await see('beta')).text).toContain('doc:gone')
    await world.sql.query("update user_account set signed_out_at = 'infinity' where user_id = 'bob'")
    expect(await see('beta')).toEqual({ status: 303, text: '' })
    await signIn('bob')
    expect(await see('beta')).toEqual({ status: 303, text: '' })
  })

  test('who is not signed in signs in first, and then sees the organization that they asked for', async () => {
    const asked = await browser.send('/account/access?organization=beta')
    const to = asked.headers.get('location') ?? ''
    expect([asked.status, to]).toEqual([
      303,
      expect.stringContaining('/account/sign-in?to=%2Faccount%2Faccess&organization=beta'),
    ])
    const form = { action: 'login', email: 'ann@x.example', password: PASSWORD }
    const sent = await browser.send(to, { form })
    expect(sent.headers.get('location')).toBe(`${world.issuer}/account/access?organization=beta`)
  })

  test('reads the page in every language', async () => {
    await signIn('ann')
    for (const [language, { account }] of LANGUAGES) {
      const { text } = await see('acme', language)
      expect(text).toContain(`<h1>${account.access.title}</h1>`)
      expect(text).toContain(`<h2>${account.access.groups}</h2>`)
    }
  })

  test('with more than are counted reads "at least"', async () => {
    const many = Array.from({ length: 101 }, (_, i) => `doc:many${i}#owner@user:eve`)
    await relate('acme', many)
    await signIn('eve')
    expect((await see('acme')).text).toContain('<strong>doc · owner</strong>: at least 100<br>')
  })

  test('reads that not everything was looked at when the PDP is slow, and still the rest', async () => {
    lateMs = 10_000
    await signIn('ann')
    const { status, text } = await see('acme')
    expect(status).toBe(200)
    expect(text).toMatch(/Not everything was looked at: [^<]*doc · viewer/)
    expect(text).toContain('group:writers')
    expect(text).not.toMatch(/Nothing that|doc:/)
  }, 20_000)

  test('who opens it all the time waits', async () => {
    await signIn('ann')
    await world.sql.query('update attempt set tries = 120')
    expect((await see('acme')).status).toBe(429)
  })
})
