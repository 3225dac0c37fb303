/** `import`, as an operator runs it: nothing while anything is refused, and all of it otherwise. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runPdpCli } from '../../../../pdp/cli.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { given } from '../../../support/tuples.ts'
import { type Served, serve } from '../../server/serve/harness.ts'

let served: Served
let folder: string
let token: string
beforeAll(async () => {
  served = await serve()
  folder = await mkdtemp(join(tmpdir(), 'import-'))
  token = await served.manager()
  const roles = { reader: { name: 'Reader', permissions: ['docs:read'] } }
  const kept = {
    app: 'docs',
    audiences: ['https://docs.example'],
    permissions: { 'docs:read': 'Read' },
    roles,
    model: null,
  }
  await given(served.store, ENVIRONMENT, { kind: 'manifest', manifest: kept })
  for (const organization of ['acme', 'other']) await given(served.store, organization)
})
afterAll(async () => {
  await served.close()
  await rm(folder, { recursive: true })
})

const run = (...args: readonly string[]) => runCommand('import', ...args)
async function runCommand(...args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const io = {
    argv: ['node', 'portcullis-pdp', ...args],
    env: { PORTCULLIS_URL: served.url, PORTCULLIS_TOKEN: token },
    stdout,
    stderr,
    exitCode: 0,
    cwd: () => folder,
    exit(status: number): never {
      io.exitCode = status
      throw new Error('exit')
    },
  }
  const printed = Promise.all([text(stdout), text(stderr)])
  await runPdpCli(io as unknown as NodeJS.Process).catch((err: Error) => {
    if (err.message !== 'exit') throw err
  })
  stdout.end()
  stderr.end()
  const [out, err] = await printed
  return { status: io.exitCode, out, err }
}
const file = async (name: string, content: string): Promise<string> => {
  await writeFile(join(folder, name), content)
  return join(folder, name)
}
const can = (subject: string, relation: string, resource: string, organization = 'acme') => {
  const [type = '', id = ''] = subject.split(':')
  return served.pdp.can(organization, { type, id }, relation, resource)
}

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

describe('import of two apps with one type', () => {
  const GROUPS = (type: string) => `model: |
  model
    schema 1.1
  type user
  type team
    relations
      define member: [user, user:*]
  type ${type}
    relations
      define viewer: [team#member]
tuples:
  - {user: 'user:new1', relation: member, object: 'team:a'}
  - {user: 'user:*', relation: member, object: 'team:b'}
`
  const args = ['-o', 'other', '--create-users']
  test('is refused before anything is written, in the dry run too, and goes with another name for the type', async () => {
    expect(await run('openfga', await file('one.fga.yaml', GROUPS('one')), '--app', 'one', '-o', 'acme')).toMatchObject(
      {
        status: 0,
      },
    )
    const two = await file(
      'two.fga.yaml',
      GROUPS('two')
        .replaceAll(', user:*', '')
        .replace(/.*user:\*.*\n/, ''),
    )
    for (const more of [['--dry-run'], []]) {
      const { status, err } = await run('openfga', two, '--app', 'two', ...args, ...more)
      expect([status, err]).toEqual([
        2,
        expect.stringMatching(/declares type team, which belongs to app one\n.*--rename/),
      ])
    }
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${served.url}/v1/users/new1`, { headers })).status).toBe(404)
    const renamed = await run('openfga', two, '--app', 'two', ...args, '--rename', 'team=crew')
    expect([renamed.status, renamed.err]).toEqual([0, ''])
    expect((await fetch(`${served.url}/v1/users/new1`, { headers })).status).toBe(200)
    expect(await served.store.manifest('two')).toMatchObject({ model: expect.stringContaining('[crew#member]') })
  })

  test.each([
    [['--rename', 'team'], /<type>=<name>/],
    [['--rename', 'taem=crew'], /no type "taem"; did you mean "team"/],
    [['--rename', 'team=crew', '--rename', 'team=gang'], /renamed twice/],
    [['-o', 'nowhere', '--rename', 'team=gang'], /nowhere/],
  ])('is refused with %j', async (more, message) => {
    const store = await file('three.fga.yaml', GROUPS('three'))
    const { status, err } = await run('openfga', store, '--app', 'three', ...args, '--dry-run', ...more)
    expect([status, err]).toEqual([2, expect.stringMatching(message)])
  })

  test('without a PDP a dry run says that none was asked', async () => {
    const store = await file('three.fga.yaml', GROUPS('three'))
    const { status, out, err } = await run('openfga', store, '--app', 'x', '--dry-run', '--url', 'http://127.0.0.1:1')
    expect([status, out]).toEqual([0, expect.stringContaining('tuples: 2 (team 2)')])
    expect(err).toMatch(/^No PDP was asked whether it takes this: /)
  })
})

describe('the tests of what is imported', () => {
  const VALIDATION = `schema: |-
  definition user {}
  definition page { relation reader: user }
relationships: |-
  page:1#reader@user:ann
assertions: {assertTrue: ["page:1#reader@user:ann"], assertFalse: ["page:1#reader@user:bob"]}
`
  test('are the assertions of a validation file, which must hold', async () => {
    const good = await file('v.yaml', VALIDATION)
    const { status, out } = await run('spicedb', good, '--app', 'pages', '-o', 'acme')
    expect([status, out]).toEqual([0, expect.stringMatching(/^assertions: 2 hold\n(.*\n)*stored: 1 tuples/)])
    const bad = await file('w.yaml', VALIDATION.replace('user:bob"]', 'user:ann"]'))
    const refused = await run('spicedb', bad, '--app', 'pages', '-o', 'acme')
    expect(refused).toMatchObject({
      status: 2,
      err: expect.stringMatching(/w\.yaml:6: .*expected false, got true\n--ig/),
    })
    expect(await run('spicedb', bad, '--app', 'pages', '-o', 'acme', '--ignore-tests')).toMatchObject({ status: 0 })
    const two = await run('spicedb', good, await file('r.txt', 'page:2#reader@user:ann'), '--app', 'pages', '--dry-run')
    expect(two).toMatchObject({ status: 2, err: expect.stringContaining('has relationships of its own') })
    expect((await run('spicedb', await file('x.yaml', 'schema: ['), '--app', 'pages')).err).toMatch(/x\.yaml:1: /)
  })

  test('are skipped where that is asked for', async () => {
    const store = await file('stale.fga.yaml', STORE.replace('viewer: true', 'viewer: false'))
    const args = ['openfga', store, '--app', 'docs', '-o', 'acme', '--dry-run']
    expect(await run(...args)).toMatchObject({ status: 2, err: expect.stringMatching(/FAIL .*\n.*\n--ignore-tests/) })
    expect(await run(...args, '--ignore-tests')).toMatchObject({ status: 0, err: '' })
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
})
