/** Files that other systems export, as an operator brings them: people of Keycloak and Auth0, tuples of OpenFGA. */
import { pbkdf2Sync } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { verifyImported } from '../../../../pdp/identity/people/passwords/imported-hash.ts'
import { readPeople } from '../../../../pdp/tools/import/people.ts'
import { openImports } from './import-world.ts'

const world = await openImports()
afterAll(() => world.close())
const { served, token, run, runCommand, file, can } = world
const userOf = async (id: string) => {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${served.url}/v1/users/${encodeURIComponent(id)}`, { headers })
  return response.status === 200 ? response.json() : null
}

const SALT = Buffer.from('0123456789abcdef')
const password = (algorithm: string, digest: string, bytes: number, rounds: number) => ({
  type: 'password',
  secretData: JSON.stringify({
    value: pbkdf2Sync('secret of ann', SALT, rounds, bytes, digest).toString('base64'),
    salt: SALT.toString('base64'),
    additionalParameters: {},
  }),
  credentialData: JSON.stringify({ hashIterations: rounds, algorithm, additionalParameters: {} }),
})
const ARGON = {
  type: 'password',
  secretData: JSON.stringify({
    value: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    salt: 'MDEyMzQ1Njc4OWFiY2RlZg==',
  }),
  credentialData: JSON.stringify({
    hashIterations: 5,
    algorithm: 'argon2',
    additionalParameters: { hashLength: ['32'], memory: ['7168'], type: ['id'], version: ['1.3'], parallelism: ['1'] },
  }),
}
const REALM = {
  realm: 'acme',
  clients: [{ clientId: 'web' }],
  users: [
    {
      id: '7f0c',
      username: 'ann',
      email: 'ann@example.com',
      emailVerified: true,
      enabled: true,
      firstName: 'Ann',
      lastName: 'Lee',
      credentials: [{ type: 'otp' }, password('pbkdf2-sha256', 'sha256', 64, 27_500)],
    },
    { id: '8a1d', username: 'bob', emailVerified: true, enabled: true, credentials: [ARGON] },
    { id: '9b2e', username: 'cy', enabled: false, credentials: [] },
    { id: 'a3f0', username: 'service-account-web', enabled: true, serviceAccountClientId: 'web' },
    {
      id: 'b4f1',
      username: 'dee',
      enabled: true,
      firstName: 'Dee',
      credentials: [{ type: 'password', secretData: '{}', credentialData: '{"algorithm":"md5"}' }],
    },
  ],
}

describe('people of Keycloak', () => {
  test('come with their ids, names and passwords; who is disabled there stays out', async () => {
    const realm = await file('acme-realm.json', JSON.stringify(REALM, null, 2))
    const dry = await run('users', realm, '--dry-run')
    expect(dry).toMatchObject({ status: 0, out: '3 users could be imported; nothing was changed\n' })
    expect(dry.err.split('\n')).toEqual([
      expect.stringMatching(/^1 are disabled, and are left out/),
      expect.stringMatching(/^1 are accounts of programs/),
      expect.stringMatching(/^1 have no password/),
      '',
    ])
    expect(await userOf('7f0c')).toBeNull()
    expect(await run('users', realm)).toMatchObject({ status: 0, out: 'imported: 3 users\n' })
    expect(await userOf('7f0c')).toMatchObject({ name: 'Ann Lee', email: 'ann@example.com', email_verified: true })
    expect(await userOf('9b2e')).toBeNull()
    expect(await run('users', realm)).toMatchObject({ status: 2 })
  })

  test.each([
    ['pbkdf2', 'sha1', 20, 20_000],
    ['pbkdf2-sha256', 'sha256', 64, 27_500],
    ['pbkdf2-sha512', 'sha512', 64, 210_000],
  ])('sign in with the password that %s made', async (algorithm, digest, bytes, rounds) => {
    const credentials = [password(algorithm, digest, bytes, rounds)]
    const people = readPeople(JSON.stringify({ realm: 'r', users: [{ id: 'a', enabled: true, credentials }] }))
    const { password_hash: hash } = JSON.parse(people?.lines[0] ?? '{}')
    expect(await verifyImported('secret of ann', hash)).toBe(true)
    expect(await verifyImported('secret of bob', hash)).toBe(false)
  })

  test('keep the numbers of Argon2', () => {
    const people = readPeople(JSON.stringify({ realm: 'r', users: [{ id: 'a', credentials: [ARGON] }] }))
    expect(people?.lines[0]).toContain('$argon2id$v=19$m=7168,t=5,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA')
  })

  test.each([
    [{ realm: 'r', users: [1, null, [], { username: 'x' }, { id: 2 }] }, ['5 cannot be read, and are left out']],
    [{ realm: 'r', users: [] }, []],
  ])('that are not people are left out, and counted', (realm, notes) => {
    expect(readPeople(JSON.stringify(realm))).toEqual({ lines: [], notes })
  })
})

describe('people of Auth0', () => {
  const HASH = '$2b$10$abcdefghijklmnopqrstuuGVvQ0vO1Yk8Gm3rS3T1n2mPq0cYyJ5K'
  test('come with the ids of their tokens', async () => {
    const lines = [
      { _id: { $oid: '5f01' }, email: 'eve@example.com', email_verified: true, passwordHash: HASH, connection: 'db' },
      { user_id: 'auth0|5f02', email: '', email_verified: true, name: 'Fay', blocked: false },
      { user_id: 'auth0|5f03', blocked: true },
    ]
    const path = await file('auth0.ndjson', `${lines.map((line) => JSON.stringify(line)).join('\n')}\nnot json\n`)
    const { status, out, err } = await run('users', path)
    expect([status, out]).toEqual([0, 'imported: 2 users\n'])
    expect(err).toMatch(/^1 cannot be read.*\n1 are disabled.*\n1 have no password/)
    expect(await userOf('auth0|5f01')).toMatchObject({ email: 'eve@example.com', email_verified: true })
    expect(await userOf('auth0|5f02')).toMatchObject({ name: 'Fay', email_verified: false })
    expect(await userOf('auth0|5f03')).toBeNull()
  })

  test.each(['', '{"id": "u1"}\n', '[1]', 'id,email\n', '{"realm": "r"}', '{"users": []}'])(
    'are not what stands in %j',
    (text) => {
      expect(readPeople(text)).toBeNull()
    },
  )
})

describe('tuples of OpenFGA', () => {
  const TUPLES = [
    { object: 'page:1', relation: 'viewer', user: 'user:ann' },
    { object: 'page:1', relation: 'viewer', user: 'group:g#member' },
  ]
  const printed = { continuation_token: '', tuples: TUPLES.map((key) => ({ key, timestamp: '2030-01-01T00:00:00Z' })) }
  test.each([
    ['t.json', JSON.stringify(printed, null, 2)],
    ['s.json', JSON.stringify(TUPLES)],
    [
      't.yaml',
      `tuples:\n${TUPLES.map(({ object, relation, user }) => `    - key:\n        user: ${user}\n        relation: ${relation}\n        object: ${object}\n      timestamp: 2030-01-01T00:00:00Z\n`).join('')}`,
    ],
    [
      't.csv',
      'user_type,user_id,user_relation,relation,object_type,object_id\nuser,ann,,viewer,page,1\ngroup,g,member,viewer,page,1\n',
    ],
  ])('are read from %s as fga prints them', async (name, text) => {
    const path = await file(name, text)
    expect(await runCommand('relationships', 'import', path, '-o', 'acme')).toMatchObject({
      status: 0,
      out: 'stored: 2 tuples of 2 lines\n',
    })
    expect(await can('user:ann', 'viewer', 'page:1')).toBe(true)
    await runCommand('relationships', 'delete', 'page:1#viewer@user:ann', 'page:1#viewer@group:g#member', '-o', 'acme')
    expect(await can('user:ann', 'viewer', 'page:1')).toBe(false)
  })

  test.each([
    ['bad.csv', 'user_type,user_id\nuser,ann\n', /bad\.csv:1: column relation, object_type, object_id is missing/],
    ['bad.json', '[{"object": "page:1"}]', /bad\.json:1: user is missing/],
    ['worse.json', '[', /worse\.json:1: /],
  ])('are refused with their lines in %s', async (name, text, message) => {
    const { status, err } = await runCommand('relationships', 'import', await file(name, text), '-o', 'acme')
    expect([status, err]).toEqual([2, expect.stringMatching(message)])
  })

  test('may end, and a time that is none is refused', async () => {
    const until = (time: string) =>
      runCommand('relationships', 'write', 'page:9#viewer@user:ann', '-o', 'acme', '--expires-at', time)
    expect(await until('2999-01-31T12:00:00Z')).toMatchObject({ status: 0, out: 'stored: 1\n' })
    const { out } = await runCommand('relationships', 'export', '-o', 'acme', '--object', 'page:9')
    expect(out).toBe('page:9#viewer@user:ann 2999-01-31T12:00:00.000Z\n')
    expect((await until('soon')).status).toBe(2)
  })
})
