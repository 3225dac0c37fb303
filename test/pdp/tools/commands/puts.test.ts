/** Every `put` of the command line changes what it names and keeps the rest; `--replace` keeps nothing. */
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RESOURCES } from '../../../../pdp/tools/commands/everyday/resource-kinds.ts'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
beforeAll(async () => {
  served = await servePdp()
  await served.good('org put acme --name Acme')
  await writeFile(join(served.folder, 'corp.secret'), 'the-secret-of-corp-1234\n')
})
afterAll(() => served.close())
const good: ServedPdp['good'] = (line) => served.good(line)
const run: ServedPdp['run'] = (line) => served.run(line)
const json = async (line: string) => JSON.parse(await good(`${line} --json`))
/** `''` is the empty argument, which a shell would pass. */
const empty = (line: string) => served.run(line.replaceAll("''", ''))

const CORP = '--issuer https://login.corp.example --client portcullis'
/** Every put: a command that makes all of it, one that names one member, and what is there afterwards; then what `--replace` leaves. */
const PUTS = [
  {
    what: 'org put child',
    made: '--name Child --parent acme',
    named: '--name Ltd',
    kept: { name: 'Ltd', parent: 'acme' },
    replaced: { name: 'Ltd', parent: null },
    get: 'org get child',
  },
  {
    what: 'user put dee',
    made: '--email dee@acme.test --email-verified --name Dee',
    named: '--name Lee',
    kept: { name: 'Lee', email: 'dee@acme.test', email_verified: true },
    replaced: { name: 'Lee', email: null, email_verified: false },
    get: 'user get dee',
  },
  {
    what: 'member put dee -o acme',
    made: '--role owner',
    named: '--status suspended',
    kept: { role: 'owner', status: 'suspended' },
    replaced: { role: 'member', status: 'suspended' },
    get: 'member get dee -o acme',
  },
  {
    what: 'role put reader',
    made: '--name Reader --permissions doc:read',
    named: '--name X',
    kept: { name: 'X', permissions: ['doc:read'] },
    replaced: { name: 'X', permissions: [] },
    get: 'role get reader',
  },
  {
    what: 'client put imp',
    made: '-o acme --name Imp --redirect-uri https://app.example/cb --post-logout-redirect-uri https://app.example/ --backchannel-logout-uri https://app.example/out',
    named: '--scope relationships:write,x',
    kept: {
      organization: 'acme',
      client_name: 'Imp',
      scope: 'relationships:write,x',
      redirect_uris: ['https://app.example/cb'],
      post_logout_redirect_uris: ['https://app.example/'],
      ...{ backchannel_logout_uri: 'https://app.example/out', backchannel_logout_session_required: true },
      grant_types: ['authorization_code', 'refresh_token'],
    },
    replaced: { organization: null, grant_types: ['client_credentials'] },
    unbound: '--unbound',
    get: 'client get imp',
  },
  {
    what: 'entitlement put seats -o acme',
    made: '{"limit":3,"until":null} --claims',
    named: '{"limit":5}',
    kept: { value: { limit: 5 }, enforcement: 'Claims' },
    replaced: { value: { limit: 5 }, enforcement: 'DecisionApi' },
    get: 'entitlement get seats -o acme',
  },
  {
    what: 'identity-provider put corp',
    made: `${CORP} --secret-file SECRET --email-domains corp.example --creates-accounts`,
    named: '--name Corp',
    kept: {
      name: 'Corp',
      issuer: 'https://login.corp.example',
      email_domains: ['corp.example'],
      creates_accounts: true,
    },
    named2: `${CORP} --name Corp`,
    replaced: { name: 'Corp', issuer: 'https://login.corp.example' },
    get: 'identity-provider get corp',
  },
] as const

describe.each(PUTS)('$what', (row) => {
  const { what, made, named, kept, replaced, get } = row
  test('keeps what it does not name', async () => {
    await good(`${what} ${made.replace('SECRET', join(served.folder, 'corp.secret'))}`)
    await good(`${what} ${named}`)
    expect(await json(get)).toMatchObject(kept)
    // Saying nothing changes nothing.
    await good(what)
    expect(await json(get)).toMatchObject(kept)
  })

  test('with --replace keeps nothing', async () => {
    if ('unbound' in row) {
      const { status, err } = await run(`${what} ${named} --replace`)
      expect([status, err]).toEqual([2, expect.stringContaining('take it out of organization acme')])
      expect(await json(get)).toMatchObject(kept)
    }
    await good(
      `${what} ${'named2' in row ? row.named2 : named} --replace ${'unbound' in row ? row.unbound : ''}`.trim(),
    )
    const after = await json(get)
    expect(after).toMatchObject(replaced)
    expect(Object.keys(after).filter((name) => !Object.hasOwn(replaced, name))).toEqual(
      Object.keys(after).filter((name) => ['id', 'user', 'key', 'client_id', 'version', 'app', 'scope'].includes(name)),
    )
  })
})

test('the page about the API lists every put, and what it keeps', async () => {
  const page = readFileSync(new URL('../../../../docs/api.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `(\S+ put)` \| (.*?) \|/gm)].map(([, command, kept = '']) => ({
    command,
    kept: [...kept.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort(),
  }))
  expect(listed.map(({ command }) => command).sort()).toEqual(RESOURCES.map(({ name }) => `${name} put`).sort())
  for (const { what, kept } of PUTS)
    expect(listed).toContainEqual({ command: what.split(' ', 2).join(' '), kept: Object.keys(kept).sort() })
})

describe('an everyday write', () => {
  beforeAll(async () => {
    await good('user put ann --email ann@acme.test')
    await good('member put ann -o acme')
    await good('role put exporter --permissions export:run')
    await good('role grant exporter user:ann -o acme')
    await good('user put root --email root@acme.test')
    await good('role grant administrator user:root --app portcullis')
  })

  test.each([
    ['member put ann -o acme --status suspended', /^$/],
    ['member put ann -o acme --status active', /^This also needs roles:write: asked for a token with it\.\n$/],
    ['user put root --email root2@acme.test', /^This also needs .*audit:read.*: asked for a token with it\.\n$/],
    ['client put wide --scope directory:read', /^$/],
    ['client put wide --name Wide', /^This also needs directory:read: asked for a token with it\.\n$/],
  ])('asks for what it needs: %s', async (line, said) => {
    const { status, err } = await run(line)
    expect([status, err]).toEqual([0, expect.stringMatching(said)])
  })

  test('is refused to a client that may not have the scope, with what the PDP said', async () => {
    await good('member put ann -o acme --status suspended')
    await writeFile(join(served.folder, 'narrow.secret'), 'a-secret-of-a-narrow-client')
    const file = join(served.folder, 'narrow.secret')
    await good(`client put narrow --scope directory:write --secret-file ${file}`)
    const line = `member put ann -o acme --status active --client-id narrow --client-secret-file ${file}`
    const { status, err } = await run(line)
    expect([status, err]).toEqual([2, expect.stringContaining('also needs the scope roles:write')])
    expect(err).not.toContain('asked for a token')
  })
})

test('an empty value takes away what is stored', async () => {
  await good('org put under --parent acme')
  expect((await empty("org put under --parent ''")).status).toBe(0)
  expect(await json('org get under')).toMatchObject({ name: 'under', parent: null })
  await good('user put eve --email eve@acme.test --email-verified')
  expect((await empty("user put eve --email ''")).status).toBe(0)
  expect(await json('user get eve')).toMatchObject({ email: null, email_verified: false })
})
