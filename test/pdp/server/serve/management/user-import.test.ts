/** People of another system come in by lines: all of them, or each wrong line is named. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Json, type Served, seedAcme, serve } from '../harness.ts'

const BCRYPT = '$2b$04$fmFt4CKbJ1gUfLZWhqQwr.RFEJeRjmCMaQtbS/L7MrxVS8PaDfOvS'
let served: Served
let admin: string
let name: string
let count = 0
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  admin = await served.manager()
})
afterAll(() => served.close())
beforeEach(() => {
  name = `person-${++count}`
})

const NDJSON = { 'content-type': 'application/x-ndjson' }
const importLines = (lines: readonly (string | object)[], { dryRun = false, token = admin } = {}) =>
  served.send('POST', `/v1/users:import?dry_run=${dryRun}`, {
    token,
    headers: NDJSON,
    raw: lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  })
const errors = ({ body }: { body: Json }): readonly string[] =>
  (body.errors ?? []).map(({ line, detail }: Json) => `${line}: ${detail}`)

describe('an import', () => {
  test('creates everybody with the hashes that they have, and names them in the log', async () => {
    const ann = { id: name, email: `${name}@x.test`, email_verified: true, name: 'Ann', password_hash: BCRYPT }
    const answer = await importLines([ann, '', { id: `${name}-b` }])
    expect([answer.status, answer.body]).toEqual([200, { users: 2, dry_run: false }])
    expect((await served.send('GET', `/v1/users/${name}`, { token: admin })).body).toEqual({
      ...{ id: name, email: `${name}@x.test`, email_verified: true, name: 'Ann' },
    })
    expect((await served.directory.userByEmail(`${name}@X.test`))?.passwordHash).toBe(BCRYPT)
    expect(await served.directory.user(`${name}-b`)).toMatchObject({ email: null, emailVerified: false })
    const { body } = await served.send('GET', '/v1/changes?log=directory', { token: admin })
    expect(JSON.stringify(body)).toContain(`${name}-b`)
  })

  test('that is only tried changes nothing', async () => {
    expect((await importLines([{ id: name }], { dryRun: true })).body).toEqual({ users: 1, dry_run: true })
    expect(await served.directory.user(name)).toBe(null)
  })

  test('names each wrong line, and imports none of the others', async () => {
    const answer = await importLines([
      { id: name },
      '{"id": ',
      '[]',
      '7',
      { email: 'a@x.test' },
      { id: 'a#b' },
      { id: `${name}-1`, email: 'no address' },
      { id: `${name}-2`, email_verified: true },
      { id: `${name}-3`, email_verified: 'true' },
      { id: `${name}-4`, name: 'a\u0007' },
      { id: `${name}-5`, password: 'plain text' },
      { id: `${name}-6`, password_hash: 'md5' },
      { id: `${name}-7`, password_hash: 7 },
      { id: `${name}-8`, password_hash: `$2b$20$${'a'.repeat(53)}` },
      { id: `${name}-9`, email: 'a\u0000@x.test' },
      `{"id": "${name}-10", "id": "other"}`,
    ])
    expect(answer.status).toBe(400)
    expect(errors(answer)).toEqual([
      '2: is not JSON',
      '3: is not a JSON object',
      '4: is not a JSON object',
      '5: id is not an id',
      '6: id is not an id',
      '7: email is not an e-mail address',
      '8: email_verified is true without an email',
      '9: email_verified is not true or false',
      '10: name is not a text of 1 to 256 characters',
      '11: "password" is not a known member',
      expect.stringMatching(/^12: password_hash is not a hash of bcrypt/),
      '13: password_hash is not a text',
      '14: password_hash its cost is 20; it may be 4 to 14',
      '15: email is not an e-mail address',
      '16: is not JSON',
    ])
    expect(await served.directory.user(name)).toBe(null)
  })

  test('takes no id and no address of somebody else, nor one twice', async () => {
    await importLines([{ id: `${name}-was` }])
    await served.send('DELETE', `/v1/users/${name}-was`, { token: admin })
    const answer = await importLines([
      { id: name, email: `${name}@x.test` },
      { id: 'alice' },
      { id: 'admin' },
      { id: `${name}-was` },
      { id: '~okta|1' },
      { id: name },
      { id: `${name}-1`, email: 'ALICE@acme.test' },
      { id: `${name}-2`, email: `${name.toUpperCase()}@x.test` },
    ])
    expect(errors(answer)).toEqual([
      '2: the id belongs to a user already',
      '3: the id belongs to a client already',
      '4: the id was deleted, and cannot be used again',
      '5: ids that begin with ~ are reserved for subjects of other issuers',
      '6: an earlier line has this id',
      '7: the e-mail address belongs to another user',
      '8: an earlier line has this e-mail address',
    ])
    expect(await served.directory.user(name)).toBe(null)
  })

  test('may use the id of a client that was deleted, as any new user', async () => {
    await served.manager({ client: name })
    await served.send('DELETE', `/v1/clients/${name}`, { token: admin })
    expect((await importLines([{ id: name }])).status).toBe(200)
    expect(await served.directory.user(name)).toMatchObject({ id: name })
  })

  test('is bounded in lines and in characters of a line', async () => {
    const long = await importLines([{ id: name, name: 'x'.repeat(5_000) }])
    expect([long.status, long.body.detail]).toEqual([413, 'a line has more than 4096 characters'])
    const many = await importLines(
      Array.from({ length: 20_001 }, (_, i) => ({ id: `${name}-${i}` })),
      { dryRun: true },
    )
    expect([many.status, many.body.detail]).toEqual([413, 'an import has at most 20000 people; split the file'])
    const most = Array.from({ length: 20_000 }, (_, i) => ({ id: `${name}-${i}` }))
    expect((await importLines(most, { dryRun: true })).body.users).toBe(20_000)
  })

  test('of nothing is nothing', async () => {
    expect((await importLines([''])).body).toEqual({ users: 0, dry_run: false })
  })

  test.each([
    ['a client of a tenant', { client: 'tenant', organization: 'acme' }],
    ['a client without directory:write', { client: 'reader', scopes: ['directory:read'] }],
  ])('is not for %s', async (_name, options) => {
    const token = await served.manager(options)
    expect((await importLines([{ id: name }], { token })).status).toBe(403)
    expect(await served.directory.user(name)).toBe(null)
  })

  test('comes as lines only', async () => {
    const answer = await served.send('POST', '/v1/users:import', { token: admin, body: { id: name } })
    expect(answer.status).toBe(415)
  })
})
