/** `import`, as an operator runs it: nothing while anything is refused, and all of it otherwise. */
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openImports } from './import-world.ts'

const world = await openImports()
afterAll(() => world.close())
const { served, folder, token, run, runCommand, file, can } = world

const STORE = `model: |
  model
    schema 1.1
  type user
  type organization
    relations
      define member: [user, user:*]
  type doc
    relations
      define owner: [organization]
      define viewer: member from owner
tuples:
  - {user: 'user:ann', relation: member, object: 'organization:a'}
  - {user: 'organization:a', relation: owner, object: 'doc:1'}
tests:
  - check: [{user: 'user:ann', object: 'doc:1', assertions: {viewer: true}}]
`

describe('import openfga', () => {
  test('shows with --dry-run what it maps, and changes nothing', async () => {
    const args = ['--app', 'docs', '-o', 'acme', '--dry-run']
    const { status, out, err } = await run('openfga', await file('a.fga.yaml', STORE), ...args)
    expect([status, err]).toEqual([0, ''])
    expect(out).toMatch(/tests: 1 passed, 0 failed\n.*tuples: 2 \(org 1, doc 1\)\n.*"organization" is called "org"/s)
    const asJson = await run('openfga', join(folder, 'a.fga.yaml'), '--app', 'docs', '--dry-run', '--json')
    expect(JSON.parse(asJson.out)).toMatchObject({ tuples: expect.any(Array), refusals: [] })
    expect(await served.store.manifest('docs')).toMatchObject({ version: 1, model: null })
    expect(await can('user:ann', 'viewer', 'doc:1')).toBe(false)
  })

  test('brings model and tuples, and leaves the rest of the manifest as it is', async () => {
    const { status, out, err } = await run('openfga', await file('a.fga.yaml', STORE), '--app', 'docs', '-o', 'acme')
    expect([status, err]).toEqual([0, ''])
    expect(out).toMatch(/docs has version 2\nstored: 2 tuples of 2 lines\n$/)
    expect(await served.store.manifest('docs')).toMatchObject({
      audiences: ['https://docs.example'],
      permissions: { 'docs:read': 'Read' },
      model: expect.stringContaining('type org\n'),
    })
    expect(await can('user:ann', 'viewer', 'doc:1')).toBe(true)
    expect(await can('user:ann', 'viewer', 'doc:1', 'other')).toBe(false)
  })

  test('names people as another provider does with --subject-prefix, and creates nobody', async () => {
    const store = await file('p.fga.yaml', STORE)
    const { status, out, err } = await run('openfga', store, '--app', 'docs', '-o', 'acme', '--subject-prefix', 'kc:')
    expect([status, err]).toEqual([0, ''])
    expect(out).not.toContain('users are named')
    expect(await served.pdp.can('acme', { type: 'user', id: '~kc:ann' }, 'viewer', 'doc:1')).toBe(true)
  })

  test('creates with --create-users whom the directory lacks, and leaves others as they are', async () => {
    const two = STORE.replace('tests:', "  - {user: 'user:cy', relation: member, object: 'organization:a'}\ntests:")
    const store = await file('u.fga.yaml', two)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const user = (id: string, init = {}) => fetch(`${served.url}/v1/users/${id}`, { headers, ...init })
    await user('cy', { method: 'PUT', body: JSON.stringify({ name: 'Cy' }) })
    const { out } = await run('openfga', store, '--app', 'docs', '-o', 'acme', '--create-users')
    expect(out).toMatch(/2 users are named, such as user:ann, and created where they are missing/)
    expect(await (await user('cy')).json()).toMatchObject({ id: 'cy', name: 'Cy' })
    expect((await user('ann')).status).toBe(200)
  })

  test.each<[string, string, readonly string[], RegExp]>([
    ['a test that fails', STORE.replace('true', 'false'), ['--app', 'docs', '-o', 'acme'], /tests do not pass:\nFAIL /],
    [
      'a broken model',
      STORE.replace('type doc', 'tpe doc'),
      ['--app', 'docs', '-o', 'acme'],
      /tests do not pass:\n.*"tpe doc"/,
    ],
    ['a prefix that no issuer has', STORE, ['--app', 'docs', '-o', 'acme', '--subject-prefix', 'a#'], /without #/],
    ['no organization', STORE, ['--app', 'docs'], /name the organization/],
    ['no app', STORE, ['-o', 'acme'], /--app/],
    ['an unknown organization', STORE, ['--app', 'docs', '-o', 'nowhere'], /nowhere/],
  ])('ends with 2 for %s', async (_, content, args, message) => {
    const { status, err } = await run('openfga', await file('b.fga.yaml', content), ...args)
    expect([status, err]).toEqual([2, expect.stringMatching(message)])
  })

  test('ends with 2 where neither or both a file and a server are named', async () => {
    expect((await run('openfga', '--app', 'docs', '-o', 'acme')).err).toMatch(/name a store file, or a server/)
    const both = ['openfga', 'x.fga.yaml', '--openfga-url', 'http://127.0.0.1:1', '--app', 'docs']
    expect((await run(...both)).status).toBe(2)
    const silent = [
      'openfga',
      '--openfga-url',
      'http://127.0.0.1:1',
      '--openfga-store',
      's',
      '--app',
      'docs',
      '-o',
      'acme',
    ]
    expect(await run(...silent)).toMatchObject({ status: 2, err: expect.stringContaining('cannot be reached') })
  })
})

describe('import spicedb', () => {
  test('brings a schema and relationships', async () => {
    const schema = await file(
      's.zed',
      'definition user {}\ndefinition note { relation reader: user\n permission read = reader }',
    )
    const lines = await file('r.txt', 'note:1#reader@user:zoe\n')
    expect(await run('spicedb', schema, lines, '--app', 'notes', '-o', 'acme')).toMatchObject({
      status: 0,
      out: expect.stringContaining('stored: 1 tuples'),
    })
    expect(await can('user:zoe', 'read', 'note:1')).toBe(true)
  })

  test('brings nothing while anything is refused', async () => {
    const schema = await file('t.zed', 'definition user {}\ncaveat late(x bytes) { true }')
    const { status, out, err } = await run('spicedb', schema, await file('r.txt', ''), '--app', 'memos', '-o', 'acme')
    expect([status, err]).toEqual([2, 'nothing was imported\n'])
    expect(out).toMatch(/refused: schema 2:\d+: /)
    expect(await served.store.manifest('memos')).toBeNull()
    expect((await run('spicedb', join(folder, 'gone'), schema, '--app', 'memos', '-o', 'acme')).err).toMatch(
      /does not exist/,
    )
  })
})

describe('manifest apply', () => {
  test('takes the model of a file beside the manifest, also of several modules', async () => {
    await file('fga.mod', "schema: '1.2'\ncontents: [core.fga, books.fga]\n")
    await file('core.fga', 'module core\ntype user\n')
    await file('books.fga', 'module books\ntype book\n  relations\n    define reader: [user]\n')
    const manifest = await file('m.yaml', 'permissions: {"books:read": Read}\nmodel_file: fga.mod\n')
    expect(await runCommand('manifest', 'apply', 'books', manifest)).toMatchObject({ status: 0 })
    const stored = await served.store.manifest('books')
    expect(stored?.permissions).toEqual({ 'books:read': 'Read' })
    expect(stored?.model).toContain('define reader: [user]')
  })

  test.each([
    ['gone.fga', /: model_file: .*gone\.fga does not exist/],
    ['bad.mod', /the module gone\.fga cannot be read/],
    ['bad.json', /bad\.json|not a model/],
  ])('ends with 2 for the model %s', async (name, message) => {
    await file('bad.mod', "schema: '1.2'\ncontents: [gone.fga]\n")
    await file('bad.json', '{')
    const { status, err } = await runCommand('manifest', 'apply', 'bad', await file('n.yaml', `model_file: ${name}\n`))
    expect([status, err]).toEqual([2, expect.stringMatching(message)])
  })
})

describe('check --model', () => {
  const MODEL = `model: |
  model
    schema 1.1
  type user
  type doc
    relations
      define blocked: [user]
      define viewer: [user] but not blocked
tuples:
  - {user: 'user:ann', relation: viewer, object: 'doc:1'}
  - {user: 'user:bob', relation: viewer, object: 'doc:1'}
  - {user: 'user:bob', relation: blocked, object: 'doc:1'}
`
  const CONDITIONS = `model: |
  model
    schema 1.1
  type user
  type doc
    relations
      define viewer: [user with near]
  condition near(ip: ipaddress, cidr: string) {
    ip.in_cidr(cidr)
  }
tuples:
  - user: 'user:ann'
    relation: viewer
    object: 'doc:1'
    condition: {name: near, context: {cidr: 10.0.0.0/8}}
`
  test('takes the values of conditions from --context, says which one is false, and names what is missing', async () => {
    const store = await file('n.fga.yaml', CONDITIONS)
    const ask = (command: string, ...more: readonly string[]) =>
      runCommand(command, 'user:ann', 'viewer', 'doc:1', '--model', store, ...more)
    const [near, far] = ['{"ip": "10.9.9.9"}', '{"ip": "11.9.9.9", "cidr": "0.0.0.0/0"}']
    expect(await ask('check', '--context', near)).toMatchObject({ status: 0, err: '' })
    expect(await ask('check', '--context', far)).toMatchObject({ status: 1, err: '' })
    expect((await ask('explain', '--context', far)).out).toBe(
      `denied  user:ann viewer doc:1 in ${store} (none: nothing grants it)
  doc:1#viewer@user:ann does not count: condition "near" is false for ip = "11.9.9.9", cidr = "10.0.0.0/8"
`,
    )
    expect(await ask('check')).toMatchObject({
      status: 2,
      out: '',
      err: expect.stringMatching(/cannot be decided \(condition_failed: .*\n.*condition "near" needs "ip"/),
    })
  })

  test.each(['{', '[]', 'null', '"x"', '1'])('ends with 2 when --context is %s', async (context) => {
    const store = await file('n.fga.yaml', CONDITIONS)
    const asked = ['user:ann', 'viewer', 'doc:1', '--model', store, '--context', context]
    expect(await runCommand('check', ...asked)).toMatchObject({
      status: 2,
      err: expect.stringContaining('--context must be a JSON object'),
    })
  })

  test('answers from a store file without a server, with the reason when asked', async () => {
    const store = await file('c.fga.yaml', MODEL)
    const ask = (command: string, ...asked: readonly string[]) => runCommand(command, ...asked, '--model', store)
    expect(await ask('check', 'user:ann', 'viewer', 'doc:1')).toMatchObject({ status: 0, err: '' })
    expect(await ask('check', 'user:bob', 'viewer', 'doc:1')).toMatchObject({ status: 1, err: '' })
    const { status, out } = await ask('explain', 'user:bob', 'viewer', 'doc:1')
    expect([status, out]).toEqual([1, expect.stringContaining('takes it away: doc:1#blocked@user:bob')])
    expect((await ask('explain', 'user:ann', 'viewr', 'doc:1')).out).toContain('did you mean "viewer"')
  })

  test.each<[string, readonly string[], RegExp]>([
    ['a bearer without a token', ['-', 'viewer', 'doc:1', '--model', 'c.fga.yaml'], /name a subject/],
    [
      'a file that is not there',
      ['user:a', 'viewer', 'doc:1', '--model', '/nowhere.fga.yaml'],
      /nowhere.*does not exist/,
    ],
  ])('ends with 2 for %s', async (_, args, message) => {
    expect(await runCommand('check', ...args)).toMatchObject({ status: 2, err: expect.stringMatching(message) })
  })

  test('warns of a model that OpenFGA would refuse, and takes it', async () => {
    const model = 'model\n  schema 1.1\ntype user\ntype shelf\n  relations\n    define holder: [user] or holder\n'
    const manifest = await file('w.yaml', JSON.stringify({ model }))
    expect(await runCommand('manifest', 'apply', 'shelves', manifest)).toMatchObject({
      status: 0,
      err: 'warning: OpenFGA refuses this: relation "holder" of type "shelf" depends on itself within the type\n',
    })
  })
})
