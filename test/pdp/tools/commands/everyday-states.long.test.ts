/** Commands that end or reset access, the log of changes, and every help within 80 columns. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
beforeAll(async () => {
  served = await servePdp()
  await served.good('user put ann --email ann@acme.test')
  await writeFile(join(served.folder, 'password'), 'a-password-of-ann')
})
afterAll(() => served.close())

describe('a person', () => {
  test('is blocked, let in, signed out and given a password, with a line for each', async () => {
    const { good, folder } = served
    expect(await good('user block ann')).toBe('blocked: ann\n')
    expect(await good('user unblock ann')).toBe('unblocked: ann\n')
    expect(await good('user sign-out ann')).toBe('signed out: ann\n')
    expect(await good(`user set-password ann --password-file ${join(folder, 'password')}`)).toBe(
      'has a new password: ann\n',
    )
    expect(JSON.parse(await good('user get ann --json'))).toMatchObject({ email: 'ann@acme.test' })
    expect(await good('changes --log directory')).toMatch(
      / service:admin +\{"id":"ann","op":"write","kind":"user"\}\n$/,
    )
  })

  test('has sessions that are listed and ended, and a PDP has sidecars', async () => {
    expect(await served.good('session list ann')).toBe('ID  BROWSER  ADDRESS  SIGNED_IN_AT  LAST_USED_AT  CLIENTS\n')
    expect(JSON.parse(await served.good('session list ann --json'))).toEqual([])
    expect(JSON.parse(await served.good('sidecars --json'))).toEqual([])
    expect(await served.good('sidecars')).toMatch(/^NAME +RESOURCE +CALLER +ROUTES +NEVER_ASKED/)
  })

  test('lets a client act, and ends it', async () => {
    const { good } = served
    await good('org put agents')
    const until = '2131-01-31T12:00:00.000Z'
    expect(await good(`delegation grant bot ann -o agents --expires-at ${until}`)).toBe('bot may act for ann\n')
    expect(await good('delegation grant helper ann -o agents --scope docs:read')).toBe('helper may act for ann\n')
    expect(JSON.parse(await good('delegation list -o agents --json'))).toEqual([
      { client: 'bot', user: 'ann', expires_at: until, scopes: null },
      { client: 'helper', user: 'ann', expires_at: null, scopes: 'docs:read' },
    ])
    expect(await good('delegation end bot ann -o agents')).toBe('bot may not act for ann any more\n')
    expect(await good('delegation end bot ann -o agents')).toMatch(/\(it could not before\)\n$/)
    expect(await good('delegation list helper -o agents')).toMatch(
      /^CLIENT +USER +EXPIRES_AT +SCOPES\nhelper +ann +- +docs:read\n$/,
    )
  })

  test('who was denied is printed, with the reason', async () => {
    const { good, run } = served
    await good('org put denials')
    expect((await run('check user:ann viewer doc:9 -o denials')).status).toBe(1)
    const printed = () => good('decisions -o denials --subject user:ann')
    // It is written in batches, beside the answer.
    await expect.poll(printed, { timeout: 20_000 }).toMatch(/\n\S+ +user:ann +viewer +doc:9 +none /)
    expect(await good('decisions -o denials --resource doc:10 --json')).toBe('')
  })

  test('who leaves loses everything, which is shown before', async () => {
    const { good } = served
    await good('org put acme')
    await good('user put bob')
    await good('member put bob -o acme --role developer')
    await good('tuple write doc:1#viewer@user:bob group:g#member@user:bob -o acme')
    const held =
      'member   developer (active) in acme\nrelation doc:1#viewer@user:bob in acme\nrelation group:g#member@user:bob in acme\n'
    expect(await good('user offboard bob --dry-run')).toBe(`${held}bob is not blocked; nothing was changed\n`)
    expect(await good('user offboard bob')).toBe(`${held}blocked, and holds nothing more: bob\n`)
    expect(await good('user offboard bob --dry-run')).toBe('bob is blocked; nothing was changed\n')
  })

  test('is signed out of an organization', async () => {
    await served.good('user put bea --email bea@acme.test')
    await served.good('member put bea -o denials')
    expect(await served.good('member sign-out bea -o denials')).toBe('signed out: bea\n')
    await served.good('org put other')
    await served.good('member put bea -o other')
    expect(await served.good('member sign-out bea -o denials')).toMatch(/^signed out of denials; elsewhere/)
    expect(JSON.parse(await served.good('member sign-out bea -o denials --json'))).toMatchObject({ everywhere: false })
  })

  test.each([
    ['delegation list', /-o ORGANIZATION is missing/],
    ['user offboard nobody', /there is no user nobody/],
    ['decisions', /name it with -o/],
    ['decisions -o denials --limit 0', /--limit 0 is not a number/],
    ['decisions -o denials --from yesterday', /from/],
    ['user offboard nobody --dry-run', /there is no user nobody/],
    ['user block nobody', /there is no user nobody/],
    ['user unblock nobody', /there is no user nobody/],
    ['user sign-out nobody', /there is no user nobody/],
    ['user reset-second-factor ann', /ann does not exist or has no/],
    ['user set-password ann', /--password-file/],
    ['user set-password nobody --password-file PASSWORD', /there is nothing to change/],
    ['session end none', /there is no such session/],
    ['member sign-out ann', /name the organization/],
    ['member sign-out nobody -o denials', /is not a member of denials/],
    ['member sign-out ann -o denails', /did you mean "denials"/],
    ['session list nobody', /there is no user nobody/],
    ['issuer delete https://nobody.example', /there is no trusted issuer/],
    ['changes -o nowhere', /there is no organization nowhere/],
  ])('is not found, or has nothing to lose: %s', async (line, said) => {
    const { status, out, err } = await served.run(line.replace('PASSWORD', join(served.folder, 'password')))
    expect([status, out]).toEqual([2, ''])
    expect(err).toMatch(said)
  })
})

test('a token is had with the secret of the folder, as every other command has it', async () => {
  expect(await served.good('token --scope directory:read')).toMatch(/^eyJ/)
})
