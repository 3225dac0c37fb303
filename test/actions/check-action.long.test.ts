/** The GitHub Action in `.github/actions/check`, run as GitHub runs it, against a server that holds requests to GitHub's description. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '../..')
const ACTION = join(ROOT, '.github/actions/check')
const MODEL =
  'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define owner: [user]\n    define viewer: [user]\n'

/** Operations of GitHub's REST API as its OpenAPI description has them (version 1.1.4): path, query, body, status. */
const OPERATIONS = [
  {
    ...{ method: 'GET', path: /^\/repos\/[^/]+\/[^/]+\/issues\/\d+\/comments$/, status: 200 },
    ...{ query: ['since', 'per_page', 'page'], body: false },
  },
  { method: 'POST', path: /^\/repos\/[^/]+\/[^/]+\/issues\/\d+\/comments$/, status: 201, query: [], body: true },
  { method: 'PATCH', path: /^\/repos\/[^/]+\/[^/]+\/issues\/comments\/\d+$/, status: 200, query: [], body: true },
]
type Comment = { readonly id: number; body: string }
type GitHub = {
  readonly server: Server
  readonly comments: Comment[]
  readonly refused: string[]
  status: number | null
}

async function github(): Promise<GitHub> {
  const state: GitHub = { server: createServer(), comments: [], refused: [], status: null }
  state.server.on('request', async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://github')
    const body = await text(request)
    const operation = OPERATIONS.find(({ method, path }) => method === request.method && path.test(pathname))
    const isBody = /^\{"body":".*"\}$/s.test(body) && request.headers['content-type'] === 'application/json'
    const isRight =
      operation !== undefined &&
      [...searchParams.keys()].every((name) => operation.query.includes(name)) &&
      isBody === operation.body &&
      request.headers.authorization === 'Bearer secret-token'
    if (!isRight) state.refused.push(`${request.method} ${request.url} ${body.slice(0, 80)}`)
    const status = state.status ?? (isRight ? operation.status : 422)
    response.writeHead(status, { 'content-type': 'application/json' })
    if (status >= 400) return response.end('{}')
    if (request.method === 'GET') {
      const [page, size] = [Number(searchParams.get('page') ?? 1), Number(searchParams.get('per_page') ?? 30)]
      return response.end(JSON.stringify(state.comments.slice((page - 1) * size, page * size)))
    }
    const written = (JSON.parse(body) as { readonly body: string }).body
    const known = state.comments.find(({ id }) => pathname.endsWith(`/comments/${id}`))
    if (known !== undefined) known.body = written
    else state.comments.push({ id: state.comments.length + 1, body: written })
    response.end('{}')
  })
  state.server.listen(0, '127.0.0.1')
  await once(state.server, 'listening')
  return state
}

let hub: GitHub
let folder: string
let base: string
const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
    cwd: folder,
    encoding: 'utf8',
  }).trim()

beforeEach(async () => {
  hub = await github()
  folder = await mkdtemp(join(tmpdir(), 'action-'))
  git('init', '--quiet')
  await writeFile(join(folder, 'model.fga'), MODEL)
  git('add', '.')
  git('commit', '--quiet', '-m', 'base')
  base = git('rev-parse', 'HEAD')
})
afterEach(async () => {
  hub.server.close()
  await rm(folder, { recursive: true })
})

/** With the environment that `action.yml` makes of the inputs. */
async function act(
  inputs: Readonly<Record<string, string>>,
  event: object = { pull_request: { number: 7, base: { sha: base } } },
) {
  const { inputs: declared, runs } = parse(await readFile(join(ACTION, 'action.yml'), 'utf8'))
  const given = (name: string): string => inputs[name] ?? declared[name].default
  const step = runs.steps.at(-1)
  const own = Object.fromEntries(
    Object.entries<string>(step.env).map(([name, value]) => [name, given(/inputs\.([\w-]+)/.exec(value)?.[1] ?? '')]),
  )
  await writeFile(join(folder, 'event.json'), JSON.stringify(event))
  const summary = join(folder, 'summary.md')
  const node = process.execPath
  const child = spawn('bash', ['-c', step.run], {
    cwd: folder,
    env: {
      ...{ PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`, HOME: folder, ...own },
      ...{ PORTCULLIS: `${node} ${ROOT}/pdp/client-main.ts`, SIDECAR: `${node} ${ROOT}/sidecar/main.ts` },
      ...{ GITHUB_ACTION_PATH: ACTION, GITHUB_EVENT_PATH: join(folder, 'event.json'), GITHUB_STEP_SUMMARY: summary },
      ...{ GITHUB_API_URL: `http://127.0.0.1:${(hub.server.address() as AddressInfo).port}` },
      ...{ GITHUB_REPOSITORY: 'acme/app', GITHUB_TOKEN: 'secret-token' },
    },
  })
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { status, out: `${out}${err}`, summary: await readFile(summary, 'utf8').catch(() => '') }
}

test('a change that gives access is told in one comment, which the next run replaces', async () => {
  await writeFile(join(folder, 'model.fga'), MODEL.replace('viewer: [user]', 'viewer: [user] or owner'))
  const first = await act({ models: 'model.fga' })
  expect([first.status, hub.refused]).toEqual([0, []])
  expect(hub.comments.map(({ body }) => body)).toEqual([
    expect.stringContaining(
      'doc#viewer: a user can gain it. Example: user:anne on doc:1, with\n    doc:1#owner@user:anne',
    ),
  ])
  await writeFile(join(folder, 'model.fga'), MODEL)
  expect((await act({ models: 'model.fga' })).status).toBe(0)
  expect(hub.comments.map(({ body }) => body)).toEqual([
    expect.stringContaining('Nobody can gain or lose any of the 2 relations'),
  ])
})

test('the comment of an earlier run is found behind a hundred others', async () => {
  for (let id = 1; id <= 130; id += 1) hub.comments.push({ id, body: 'a person wrote this' })
  await act({ models: 'model.fga' })
  await act({ models: 'model.fga' })
  expect([hub.comments.length, hub.refused]).toEqual([131, []])
})

test('a fault in a route file or a model fails the run, and the comment names its place', async () => {
  await writeFile(join(folder, 'model.fga'), `${MODEL}    define odd: owner but not owner\n`)
  await writeFile(join(folder, 'routes.yaml'), 'upstream: http://127.0.0.1:3000\nroutes: {GET /x: nonsense}\n')
  const { status } = await act({ models: 'model.fga', 'route-files': 'routes.yaml' })
  expect(status).toBe(1)
  expect(hub.comments[0]?.body).toMatch(/❌ Route file `routes\.yaml`[\s\S]*routes\.yaml/)
  expect(hub.comments[0]?.body).toMatch(/❌ Model `model\.fga`[\s\S]*model\.fga:8: doc#odd: nobody can ever have it/)
})

test('tests of a store file that fail are told', async () => {
  await writeFile(
    join(folder, 'shop.fga.yaml'),
    'model_file: model.fga\ntests:\n  - {name: t, check: [{user: "user:a", object: "doc:1", assertions: {viewer: true}}]}\n',
  )
  const { status } = await act({ models: 'shop.fga.yaml' })
  expect([status, hub.comments[0]?.body]).toEqual([1, expect.stringContaining('expected true, got false')])
})

test('a token that may not write leaves the summary, a warning and the result', async () => {
  hub.status = 403
  const { status, out, summary } = await act({ models: 'model.fga' })
  expect([status, hub.comments]).toEqual([0, []])
  expect(out).toContain('::warning::no comment was written: GitHub answered 403')
  expect(summary).toContain('## Portcullis')
})

test('texts with fences of their own stay inside of theirs', async () => {
  await writeFile(join(folder, 'model.fga'), `${MODEL}# \`\`\`\`\n    define \`\`\`\`: [user]\n`)
  await act({ models: 'model.fga' })
  expect(hub.comments[0]?.body).toMatch(/\n`{5}text\n[\s\S]*\n`{5}$/)
})

test('without a pull request nothing is posted, and without a file it says what to name', async () => {
  expect(await act({ models: 'model.fga' }, {})).toMatchObject({ status: 0 })
  expect(await act({})).toMatchObject({
    status: 1,
    out: expect.stringContaining('name route-files, models or manifests'),
  })
  expect([hub.comments, hub.refused]).toEqual([[], []])
})
