import { beforeEach, describe, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { decode, PASSWORD } from '../../harness.ts'
import { browser, useWorld, world } from '../account/forgetting.ts'
import { added, codesIn, codesLeft, giveCode, mailsTo, PAGE, signIn } from './own-factors.ts'

useWorld()
beforeEach(() => {
  world.time.offsetMs = 32_000 - (Date.now() % 30_000)
})

const stranger = () => createBrowser(world.issuer)
async function asked(email: string, by = stranger()): Promise<(code: string) => Promise<Response>> {
  const html = await (await signIn(email, by)).text()
  return (code) => giveCode(html, code, by)
}

describe('a recovery code', () => {
  test('lets its person in once, says how many are left, and the person gets a mail', async () => {
    const { id, email, codes } = await added()
    const give = await asked(email)
    const answer = await give(codes[3] ?? '')
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('9 of 10 are left')])
    expect((await (await asked(email))(codes[3] ?? '')).status).toBe(400)
    expect(await codesLeft(id)).toBe(9)
    await world.identity.mailed()
    expect(mailsTo(email).at(-1)).toContain('with a recovery code. You have 9 left.')
  })

  test.each([
    ['in small letters', (code: string) => code.toLowerCase()],
    ['without its groups', (code: string) => code.replaceAll('-', '')],
    ['with spaces', (code: string) => ` ${code.replaceAll('-', ' ')} `],
    [
      'with digits that look like letters',
      (code: string) => code.replaceAll('O', '0').replaceAll('I', '1').replaceAll('B', '8'),
    ],
  ])('may be written %s', async (_, written) => {
    const { email, codes } = await added()
    expect((await (await asked(email))(written(codes[0] ?? ''))).status).toBe(200)
  })

  test('counts as the second factor for an application, which gets its answer after the page', async () => {
    const { email, codes } = await added()
    const flow = createFlow(world)
    const by = stranger()
    const path = (await by.send(flow.authorizeUrl({ acr_values: 'mfa' }))).headers.get('location') ?? ''
    const form = { action: 'login', email, password: PASSWORD }
    const html = await (await by.send(path, { form })).text()
    const used = await by.send(path, { form: { ...hiddenFields(html), action: 'code', code: codes[0] ?? '' } })
    const shown = await used.text()
    expect(shown).toContain('9 of 10 are left')
    const onward = /class="act" href="([^"]+)"/.exec(shown)?.[1] ?? ''
    const end = await by.follow(onward, () => ({ action: 'continue' }))
    const answer = await flow.redeem(end.searchParams.get('code') ?? '')
    expect(decode(String(answer.body.id_token)).payload).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
  })

  test('is taken on the page for requests of applications', async () => {
    const { email, codes } = await added()
    const by = stranger()
    const html = await (
      await by.send('/oauth/approve', { form: { action: 'login', email, password: PASSWORD } })
    ).text()
    const give = (code: string) => by.send('/oauth/approve', { form: { ...hiddenFields(html), action: 'code', code } })
    expect((await give('AAAA-AAAA-AAAA-AAAA')).status).toBe(400)
    expect(await (await give(codes[1] ?? '')).text()).toContain('9 of 10 are left')
    expect(await (await by.send('/oauth/approve')).text()).toContain(email)
  })

  test('is good for one of several that give it at the same time', async () => {
    const { id, email, codes } = await added()
    // Each in a browser of its own, all past the password.
    const all = await Promise.all(Array.from({ length: 8 }, () => asked(email)))
    const answers = await Promise.all(all.map((give) => give(codes[0] ?? '')))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await codesLeft(id)).toBe(9)
  })

  test('of another person, made up, or empty lets nobody in', async () => {
    const [one, two] = [await added(), await added(stranger())]
    const give = await asked(one.email)
    for (const code of [two.codes[0] ?? '', 'AAAA-AAAA-AAAA-AAAA', 'AAAAAAAAAAAAAAAA', `${one.codes[0]}A`, '', '%'])
      expect([code, (await give(code)).status]).toEqual([code, 400])
    expect([await codesLeft(one.id), await codesLeft(two.id)]).toEqual([10, 10])
  })

  test('that is wrong says so, opens its form again, and is counted with the codes and passwords', async () => {
    const { email, codes } = await added()
    const give = await asked(email)
    const refused = await (await give('AAAA-AAAA-AAAA-AAAA')).text()
    expect(refused).toContain('<details open>')
    expect(refused).toContain('This recovery code is not right')
    for (let i = 0; i < 9; i += 1) await give('AAAA-AAAA-AAAA-AAAA')
    expect((await give(codes[0] ?? '')).status).toBe(429)
  })

  test('of before is void once new ones were made', async () => {
    const { id, email, codes } = await added()
    const form = { xsrf: hiddenFields(await (await browser.send(PAGE)).text()).xsrf ?? '', action: 'renew' }
    const renewed = codesIn(await (await browser.send(PAGE, { form })).text())
    expect(renewed).toHaveLength(10)
    expect((await (await asked(email))(codes[0] ?? '')).status).toBe(400)
    expect((await (await asked(email))(renewed[0] ?? '')).status).toBe(200)
    expect(await codesLeft(id)).toBe(9)
    await world.identity.mailed()
    expect(mailsTo(email).some((text) => text.includes('New recovery codes were made'))).toBe(true)
  })

  test('stands in no table, log or mail', async () => {
    const { id, email, codes } = await added()
    const rows = await world.sql.query<{ row: string }>(
      'select r::text as row from recovery_code r where user_id = $1',
      [id],
    )
    await world.identity.mailed()
    const everything = [...rows.map(({ row }) => row), ...world.log, ...mailsTo(email)].join('\n')
    expect(rows).toHaveLength(10)
    for (const code of codes)
      for (const written of [code, code.replaceAll('-', '')]) expect(everything).not.toContain(written)
  })
})
