/** A decision log is played again: every tool that answers gives each of its questions the same verdict for the same reason. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { REASONS, type ReasonCode } from '../../../../pdp/shared/domain/reasons.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../../pdp/shared/process/shutdown.ts'
import { startDemoSidecar } from '../../../e2e/demo-stack.ts'
import { ADMIN_SECRET, HOST } from '../../../e2e/pdp-settings.ts'
import type { Browser } from '../../../support/browser.ts'
import { freePort } from '../../../support/free-port.ts'
import { runCli } from '../../../support/peers/sidecar-cli.ts'
import { until } from '../../../support/until.ts'
import { API, CONTEXT, SECRET } from '../../identity/harness.ts'
import { get, signedInTo } from '../../server/console/visitor.ts'
import { openRunningWorld, type RunningWorld } from '../../server/runtime/running-world.ts'
import { decisionClient } from '../../server/serve/decision-client.ts'
import { runOn } from '../commands/served-pdp.ts'
import { type Bearer, bearersOf, CHECKS, fillWorld, readerToken } from './every-tool-world.ts'

type Line = {
  readonly event: string
  readonly request_id: string
  readonly subject: string
  readonly app: string | null
  readonly actors?: readonly string[]
  readonly scopes?: readonly string[]
  readonly permissions: readonly { relation: string; resource: string; allowed: boolean; reason: ReasonCode }[]
}
/** One question of the log. */
type Played = Omit<Line, 'permissions'> & Line['permissions'][number]
type Verdict = `${'allowed' | 'denied'} ${string}`

const TOGETHER = 8

let world: RunningWorld
let folder: string
let browser: Browser
let grpc: ReturnType<typeof decisionClient>
/** By the id of the requests that they were asked with. */
const bearers = new Map<string, Bearer>()
const lines: string[] = []
let log: readonly Played[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'every-tool-'))
  const port = await freePort()
  const settings = {
    console: true,
    decisionsKept: 10_000,
    decisionsKeptDays: 7,
    grpc: { host: HOST, port },
    grpcTls: null,
  }
  world = await openRunningWorld(settings, (line) => void lines.push(line))
  grpc = decisionClient(world.grpc)
  await fillWorld(world)
  const permissions = CHECKS.map(([relation, resource]) => ({ relation, resource }))
  for (const bearer of await bearersOf(world)) {
    const { id: requestId, token, subject } = bearer
    bearers.set(requestId, bearer)
    await grpc.decide({ token, permissions, requestId, route: 'GET /played', ...(subject !== null && { subject }) })
  }
  log = await logged(CHECKS.length * bearers.size)
  browser = await signedInTo(world, 'dan', 'dan@x.example')
})
afterAll(async () => {
  grpc.close()
  await world.close()
  await rm(folder, { recursive: true })
})

async function logged(count: number): Promise<readonly Played[]> {
  const played = lines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ event, request_id: id }) => event === 'decision' && bearers.has(id))
    .flatMap(({ permissions, ...of }) => permissions.map((one) => ({ ...of, ...one })))
  expect(played).toHaveLength(count)
  return played
}

const named = ({ request_id: id, relation, resource }: Played): string => `${id}: ${relation} ${resource}`
const verdictOf = ({ allowed, reason }: { readonly allowed: boolean; readonly reason: string }): Verdict =>
  `${allowed ? 'allowed' : 'denied'} ${reason}`

/** Each question with its answer, as the log has it and as the tool gives it. */
async function compare(
  isPlayed: (of: Played) => boolean,
  tool: (of: Played) => Promise<Verdict>,
  shown: (verdict: Verdict) => string = (verdict) => verdict,
): Promise<void> {
  const played = log.filter(isPlayed)
  expect(played.length).toBeGreaterThan(CHECKS.length)
  const found: string[] = []
  for (let at = 0; at < played.length; at += TOGETHER)
    found.push(
      ...(await Promise.all(
        played.slice(at, at + TOGETHER).map(async (one) => `${named(one)}: ${shown(await tool(one))}`),
      )),
    )
  expect(found).toEqual(played.map((one) => `${named(one)}: ${shown(verdictOf(one))}`))
}

function tokenOf({ request_id: id }: Played): Bearer {
  const bearer = bearers.get(id)
  if (bearer === undefined) throw new Error(`nobody asked ${id}`)
  return bearer
}
const isBearer = (of: Played): boolean => tokenOf(of).subject === null
const onlyVerdict = (verdict: string): string => verdict.split(' ')[0] ?? ''

test('the log has all kinds of answers', () => {
  const codes = new Set(log.map(({ reason }) => reason))
  const expected: readonly ReasonCode[] = ['tuple', 'group', 'model', 'membership', 'role', 'none', 'unknown_relation']
  expect([...codes]).toEqual(
    expect.arrayContaining([
      ...expected,
      'membership_suspended',
      'delegation_missing',
      'actor_denied',
      'condition_failed',
    ]),
  )
})

test.each(['check', 'explain'] as const)('portcullis %s', async (command) => {
  const env = { PORTCULLIS_TOKEN: await readerToken(world) }
  await compare(
    () => true,
    async (of) => {
      const app = of.app === null ? '--no-app' : `--app ${of.app}`
      const acting = (of.actors ?? []).map((id) => ` --actor ${id}`).join('')
      const line = `${command} ${of.subject} ${of.relation} ${of.resource} -o acme ${app}${acting} --json`
      const { status, out, err } = await runOn({ folder, url: world.issuer }, line, { env })
      if (status === 2) return `denied ${/\((\w+):/.exec(err)?.[1]}`
      const [answer] = JSON.parse(out).permissions
      expect(status).toBe(answer.allowed ? 0 : 1)
      return `${answer.allowed ? 'allowed' : 'denied'} ${answer.reason?.code}`
    },
    command === 'check' ? onlyVerdict : undefined,
  )
})

const post = async (path: string, token: string, body: object) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(world.issuer + path, { method: 'POST', headers, body: JSON.stringify(body) })
  // biome-ignore lint/suspicious/noExplicitAny: what the PDP sent is judged by the expectations
  return { status: response.status, body: (await response.json()) as any }
}

test('portcullis check of the bearer, with the token that asked', () =>
  compare(
    isBearer,
    async (of) => {
      const env = { PORTCULLIS_TOKEN: tokenOf(of).token }
      const line = `check - ${of.relation} ${of.resource} --json`
      const { status, out } = await runOn({ folder, url: world.issuer }, line, { env })
      if (status === 2) return 'denied undecided'
      return JSON.parse(out).permissions[0].allowed ? 'allowed unsaid' : 'denied unsaid'
    },
    onlyVerdict,
  ))

test('the app that a question names counts, whatever the token is for', async () => {
  const token = await readerToken(world, 'robot')
  const question = { subject: 'user:eve', permissions: [{ relation: 'bills:pay', resource: 'organization:acme' }] }
  const asked = (more: object) => post('/oauth/decisions', token, { ...question, ...more })
  expect((await asked({ app: 'bills' })).body.permissions[0].allowed).toBe(true)
  expect((await asked({})).body.permissions[0].allowed).toBe(false)
})

test.each([{ actors: ['a b'] }, { actors: 'bot' }, { actors: Array(17).fill('bot') }, { scopes: [1] }])(
  '%j is a mistake of the request',
  async (more) => {
    const permissions = [{ relation: 'viewer', resource: 'doc:6' }]
    const { status } = await post('/oauth/decisions', await readerToken(world), {
      ...{ subject: 'user:eve', permissions },
      ...more,
    })
    expect(status).toBe(400)
  },
)

test('a person may not say who acts', async () => {
  const { token } = bearers.get('eve-of-the-app') ?? { token: '' }
  const permissions = [{ relation: 'viewer', resource: 'doc:6' }]
  expect((await post('/oauth/decisions', token, { permissions, actors: ['bot'] })).status).toBe(403)
})

test('POST /oauth/decisions with the token that asked', () =>
  compare(
    isBearer,
    async (of) => {
      const { relation, resource } = of
      const { body } = await post('/oauth/decisions', tokenOf(of).token, { permissions: [{ relation, resource }] })
      return `${body.permissions[0].allowed ? 'allowed' : 'denied'} unsaid`
    },
    onlyVerdict,
  ))

test('POST /oauth/decisions of a reader', async () => {
  const reader = await readerToken(world)
  await compare(
    () => true,
    async (of) => {
      const { subject, relation, resource, app, actors, scopes } = of
      const { body } = await post('/oauth/decisions', reader, {
        ...{ subject, permissions: [{ relation, resource }], explain: true, actors, scopes },
        ...(app !== null && { app }),
      })
      const [{ allowed, reason }] = body.permissions
      return `${allowed ? 'allowed' : 'denied'} ${reason.code}`
    },
  )
})

test('the AuthZEN endpoint with the token that asked', () =>
  compare(isBearer, async (of) => {
    const thing = (text: string) => ({ type: text.split(':')[0], id: text.slice(text.indexOf(':') + 1) })
    const { body } = await post('/access/v1/evaluation', tokenOf(of).token, {
      subject: thing(of.subject),
      action: { name: of.relation },
      resource: thing(of.resource),
    })
    return `${body.decision ? 'allowed' : 'denied'} ${body.context.reason_code}`
  }))

test('gRPC with the token that asked', () =>
  compare(isBearer, async (of) => {
    const { relation, resource } = of
    const { permissions } = await grpc.decide({ token: tokenOf(of).token, permissions: [{ relation, resource }] })
    return `${permissions[0]?.allowed ? 'allowed' : 'denied'} ${permissions[0]?.reasonCode}`
  }))

/** A route for each check, which the sidecar asks as its own words say it. */
async function routeFile(): Promise<string> {
  const words = CHECKS.map(([relation, resource]) =>
    relation.includes(':') && resource === 'organization:acme' ? `permission ${relation}` : `${relation} ${resource}`,
  )
  const file = join(folder, 'portcullis.yaml')
  const routes = words.map((check, i) => `  GET /${i}: "${check}"\n`).join('')
  const head = `portcullis: v1\nresource: "${API}"\nissuers: [{issuer: "${world.issuer}"}]\nupstream: http://127.0.0.1:9\n`
  await writeFile(file, `${head}pdp: {address: "${world.grpc}", insecure: true}\nroutes:\n${routes}`)
  return file
}
const indexOf = ({ relation, resource }: Played): number =>
  CHECKS.findIndex(([one, of]) => one === relation && of === resource)

test('portcullis-sidecar explain with the token that asked', async () => {
  const file = await routeFile()
  await compare(
    (of) => tokenOf(of).isForApi,
    async (of) => {
      const path = join(folder, `token-of-${of.request_id}`)
      await writeFile(path, tokenOf(of).token)
      const { status, stdout } = await runCli([
        'explain',
        'GET',
        `/${indexOf(of)}`,
        '-f',
        file,
        '--token',
        path,
        '--json',
      ])
      const { allowed, reason } = JSON.parse(stdout)
      expect(status).toBe(allowed ? 0 : 1)
      return `${allowed ? 'allowed' : 'denied'} ${allowed ? of.reason : /\((\w+): /.exec(reason)?.[1]}`
    },
  )
})

test('portcullis-sidecar check --pdp names what is unknown, and nothing else', async () => {
  const file = await routeFile()
  const path = join(folder, 'token')
  for (const { id, token, isForApi } of bearers.values()) {
    if (!isForApi) continue
    await writeFile(path, token)
    const { stdout, stderr } = await runCli(['check', file, '--pdp', '--token', path])
    const said = [...(stdout + stderr).matchAll(/GET \/(\d+) asks/g)].map(([, i]) => Number(i))
    const unknown = log.filter((one) => one.request_id === id && one.reason === 'unknown_relation').map(indexOf)
    expect([id, ...said]).toEqual([id, ...unknown])
  }
})

test('portcullis-sidecar check --pdp finds a client of sign_in that the issuer does not know', async () => {
  const [path, token] = [join(folder, 'sign-in.yaml'), join(folder, 'token')]
  await writeFile(join(folder, 'keys'), 'k'.repeat(40))
  await writeFile(token, bearers.get('eve-of-the-app')?.token ?? '')
  const plain = await readFile(await routeFile(), 'utf8')
  const said = async (client: string): Promise<string> => {
    const providers = `[{issuer: "${world.issuer}", client_id: ${client}}]`
    const signIn = `public_url: https://app.example.com\nsign_in: {keys_file: ${join(folder, 'keys')}, providers: ${providers}}\n`
    await writeFile(path, plain.replace('routes:', `${signIn}routes:`))
    const { stdout, stderr } = await runCli(['check', path, '--pdp', '--token', token])
    return stdout + stderr
  }
  expect(await said('flwos')).toContain(`sign_in: ${world.issuer} does not know client flwos`)
  const secretHash = hashGeneratedSecret(SECRET)
  const metadata = { redirect_uris: ['https://app.example.com/.portcullis/callback'], scope: 'openid' }
  await world.directory.putClient({ id: 'flwos', app: null, organization: null, metadata, secretHash }, CONTEXT)
  expect(await said('flwos')).not.toContain('sign_in: ')
})

test('sessions and sidecars are printed', async () => {
  const env = { PORTCULLIS_CLIENT_SECRET: ADMIN_SECRET }
  const printed = async (line: string) => (await runOn({ folder, url: world.issuer }, line, { env })).out
  const [session] = JSON.parse(await printed('session list eve --json'))
  expect(session).toMatchObject({ clients: expect.arrayContaining(['flows', 'public-flows']) })
  expect(await printed('session list eve')).toMatch(new RegExp(`\\n${session.id} +- +127\\.0\\.0\\.1 +\\S+Z +\\S+Z +`))
  const log = createLog({ service: 'test', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const [listen, adminListen] = [`${HOST}:${await freePort()}`, `${HOST}:${await freePort()}`]
  await startDemoSidecar({ path: await routeFile(), listen, adminListen, log, shutdown })
  await until(async () => JSON.parse(await printed('sidecars --json')).length > 0)
  expect(await printed('sidecars')).toContain(` ${API} `)
  await shutdown.run('test')
  expect(await printed(`session end ${session.id}`)).toBe(`ended: ${session.id}\n`)
  expect(JSON.parse(await printed('session list eve --json'))).toEqual([])
})

/** What Check access says at the end of a link. */
async function checked(href: string): Promise<Verdict> {
  const { text } = await get(browser, href.replaceAll('&amp;', '&'))
  const sentence = /<p class="sentence">(.*?)<\/p>/.exec(text)?.[1] ?? ''
  const said = Object.entries(REASONS).find(([, words]) => sentence.includes(`: ${words}.`))?.[0]
  // Nobody is named in another sentence.
  const code = said ?? (sentence.includes('There is no') ? 'none' : sentence)
  return `${text.includes('class="answer is-allowed"') ? 'allowed' : 'denied'} ${code}`
}
const pages = new Map<string, Promise<string>>()
/** What Decisions shows of the request, from the caption on. */
async function decisionsOf({ request_id: id }: Played, caption: string): Promise<string> {
  const page = pages.get(id) ?? get(browser, `/console/decisions?org=acme&request=${id}`).then(({ text }) => text)
  pages.set(id, page)
  const text = await page
  return text.slice(text.indexOf(caption))
}
const linkIn = (text: string, { relation, resource }: Played): string =>
  [...text.matchAll(/href="(\/console\/ask\?[^"]*)"/g)]
    .map(([, href = '']) => href.replaceAll('&amp;', '&'))
    .find((href) => {
      const query = new URL(href, world.issuer).searchParams
      return query.get('relation') === relation && query.get('resource') === resource
    }) ?? 'none'

test('the console, by the links of the latest decisions', () =>
  compare(
    () => true,
    async (of) => checked(linkIn(await decisionsOf(of, 'The latest decisions'), of)),
  ))

test('the console, by the links of what all PDPs denied, and the command that prints it', async () => {
  const env = { PORTCULLIS_CLIENT_SECRET: ADMIN_SECRET }
  const denied = log.filter(({ allowed }) => !allowed)
  const kept: string[] = []
  pages.clear()
  await until(async () => {
    const { out } = await runOn({ folder, url: world.issuer }, 'decisions -o acme --limit 9999 --json', { env })
    kept.splice(0, kept.length, ...out.split('\n').filter((line) => line.includes('"GET /played"')))
    return kept.length >= denied.length
  })
  const of = ({ request_id: id, subject, relation, resource, reason, app, actors = [] }: Played) => ({
    id,
    subject,
    relation,
    resource,
    reason,
    app,
    actors,
    whole: true,
  })
  const found = kept.map((line) => JSON.parse(line)).map((item) => ({ ...of(item), whole: item.whole }))
  expect(found.reverse()).toEqual(denied.map(of))
  await compare(
    ({ allowed }) => !allowed,
    async (of) => checked(linkIn(await decisionsOf(of, 'Denied, by all PDPs'), of)),
  )
})
