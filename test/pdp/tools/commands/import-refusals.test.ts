/** `import` where something is in the way: it is refused before anything is written. */
import { afterAll, describe, expect, test } from 'vitest'
import { openImports } from './import-world.ts'

const world = await openImports()
afterAll(() => world.close())
const { served, token, run, file, can } = world

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

  test('is refused whole where a user cannot be created, and people may have another type there', async () => {
    const store = `model: |
  model
    schema 1.1
  type employee
  type desk
    relations
      define holder: [employee]
tuples:
  - {user: 'employee:new2', relation: holder, object: 'desk:1'}
  - {user: 'employee:jos\u00e9', relation: holder, object: 'desk:1'}
`
    const both = await file('desk.fga.yaml', store)
    const one = await file('one-desk.fga.yaml', store.replace(/.*\u00e9.*\n/, ''))
    expect((await run('openfga', one, '--app', 'desks', '--dry-run')).out).toMatch(/people.*add --rename employee=user/)
    const people = ['--app', 'desks', ...args, '--rename', 'employee=user']
    const refused = await run('openfga', both, ...people)
    expect([refused.status, refused.out]).toEqual([
      2,
      expect.stringContaining('refused: user:jos\u00e9 cannot be created'),
    ])
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${served.url}/v1/users/new2`, { headers })).status).toBe(404)
    expect(await run('openfga', one, ...people)).toMatchObject({ status: 0, err: '' })
    expect((await fetch(`${served.url}/v1/users/new2`, { headers })).status).toBe(200)
    expect(await can('user:new2', 'holder', 'desk:1', 'other')).toBe(true)
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
