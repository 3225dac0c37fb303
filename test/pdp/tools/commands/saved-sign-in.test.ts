/** What `portcullis` says when the PDP does not accept the sign-in that was kept, or cannot look at it now. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loginFile, readLogin, readLogins, saveLogin } from '../../../../pdp/tools/commands/everyday/saved-login.ts'
import { runOn } from './served-pdp.ts'

let answer = { status: 200, body: '' }
const server = createServer((_req, res) => {
  res.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
})
let folder: string
let url: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'saved-sign-in-'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(async () => {
  server.close().closeAllConnections()
  await rm(folder, { recursive: true })
})

const AWAY = 'the PDP answered with status 503. Try again later\n'
const ended = (why: string): string => `the sign-in has ended (${why}). Sign in again with: portcullis login\n`

test.each([
  ['token', 'to renew', 503, { error: 'temporarily_unavailable' }, AWAY],
  ['token', 'to renew', 400, { error: 'invalid_grant' }, ended('invalid_grant')],
  ['token', 'to renew', 401, { error: 'invalid_client' }, ended('invalid_client')],
  ['whoami', 'good', 503, null, AWAY],
  ['whoami', 'good', 401, { error: 'invalid_token' }, ended('invalid_token')],
])('%s says whether another sign-in helps: %s, %i, %j', async (line, state, status, body, message) => {
  const file = loginFile({ HOME: folder }, process.platform)
  const expiresAtMs = state === 'good' ? 4_000_000_000_000 : 0
  saveLogin(file, { url, clientId: 'portcullis-cli', accessToken: 'a', expiresAtMs, refreshToken: 'r' })
  answer = { status, body: body === null ? 'upstream is away' : JSON.stringify(body) }
  expect(await runOn({ folder, url }, line, {})).toEqual({ status: 2, out: '', err: message })
  expect(readLogin(file, url)).not.toBeNull()
})

test.each([
  ['token', {}],
  ['whoami', {}],
  ['token --url http://127.0.0.1:9', {}],
  ['whoami', { PORTCULLIS_URL: 'http://127.0.0.1:9' }],
])('the token of one PDP goes to no other: %s %j', async (line, env) => {
  const file = loginFile({ HOME: folder }, process.platform)
  await rm(file, { force: true })
  const other = 'https://other.example'
  saveLogin(file, { url: other, clientId: 'portcullis-cli', accessToken: 'a', expiresAtMs: 4e12, refreshToken: 'r' })
  const { status, out, err } = await runOn({ folder, url }, line, { env })
  expect([status, out]).toEqual([2, ''])
  expect(err).toMatch(/^the sign-in is for https:\/\/other\.example, not for http:\/\/127\.0\.0\.1:\d+\. Sign in there/)
})

test('each PDP has a sign-in of its own, and logout ends one', async () => {
  const file = loginFile({ HOME: folder }, process.platform)
  await rm(file, { force: true })
  const login = { url, clientId: 'portcullis-cli', accessToken: 'here', expiresAtMs: 4e12, refreshToken: null }
  saveLogin(file, { ...login, url: 'https://other.example', accessToken: 'there' })
  saveLogin(file, login)
  saveLogin(file, { ...login, url: 'https://third.example', accessToken: 'third' })
  const token = async (line: string): Promise<string> => (await runOn({ folder, url }, line, { env: {} })).out
  expect(await token(`token --url ${url}`)).toBe('here\n')
  expect(await token('token --url https://other.example')).toBe('there\n')
  answer = { status: 200, body: '{}' }
  expect(await runOn({ folder, url }, `logout --url ${url}`, {})).toMatchObject({ status: 0, out: 'Signed out\n' })
  expect(readLogins(file).map((left) => left.url)).toEqual(['https://other.example', 'https://third.example'])
})

test('the sign-in that an earlier version kept is found', async () => {
  const file = loginFile({ HOME: folder }, process.platform)
  const login = { url, clientId: 'portcullis-cli', accessToken: 'a', expiresAtMs: 4e12, refreshToken: null }
  saveLogin(file, login)
  await writeFile(file, JSON.stringify(login))
  expect(readLogins(file)).toEqual([login])
})
