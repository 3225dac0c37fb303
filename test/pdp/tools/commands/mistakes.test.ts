/** Mistakes of people at `portcullis`: each is named by what they typed. */
import { once } from 'node:events'
import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:http2'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { DATABASE_AWAY } from '../../../../pdp/identity/provider/error-responses.ts'
import { runOn } from './served-pdp.ts'

const NOWHERE = { folder: tmpdir(), url: 'http://127.0.0.1:9' }
const CHECK = 'check user:ann viewer doc:1 -o acme'

test('a setting with a mistake in its name is named, and what Kubernetes sets is not', async () => {
  const env = { PORTCULLIS_TOKEN_FLIE: 'x', PORTCULLIS_PORT: 'tcp://10.0.0.1', PORTCULLIS_TOKEN_FILE: '/dev/null' }
  const { out, err } = await runOn(NOWHERE, 'help tuple', { env })
  expect(err).toBe('warning: PORTCULLIS_TOKEN_FLIE is not a setting; did you mean "PORTCULLIS_TOKEN_FILE"?\n')
  expect(out).toContain('Usage: portcullis tuple')
})

test.each([
  [`${CHECK} --token-file /dev/null`, {}, '--token-file names an empty file: /dev/null'],
  [`${CHECK} --token-file=`, {}, '--token-file is set but empty'],
  [`${CHECK} --client-secret-file /dev/null`, {}, '--client-secret-file names an empty file: /dev/null'],
  [CHECK, { PORTCULLIS_TOKEN_FILE: '/dev/null' }, 'PORTCULLIS_TOKEN_FILE names an empty file: /dev/null'],
  [CHECK, { PORTCULLIS_TOKEN_FILE: '' }, 'PORTCULLIS_TOKEN_FILE is set but empty'],
  [CHECK, { PORTCULLIS_TOKEN: '' }, 'PORTCULLIS_TOKEN is set but empty'],
])('of %j with %j it says what is empty, and ends with 2', async (line, env, message) => {
  expect(await runOn(NOWHERE, line, { env })).toMatchObject({ status: 2, out: '', err: `${message}\n` })
})

test.each([
  ['help chekc', 'error: there is no command "chekc"; did you mean "check"?\n'],
  ['help tuple wriet', 'error: tuple has no command "wriet"; did you mean "write"?\n'],
  ['help nothing-like-it', 'error: there is no command "nothing-like-it"\n'],
  ['chekc --help', 'error: there is no command "chekc"; did you mean "check"?\n'],
  ['tuple wriet -h', 'error: tuple has no command "wriet"; did you mean "write"?\n'],
])('%s says that there is none, and ends with 2', async (line, message) => {
  const said: string[] = []
  await expect(runOn(NOWHERE, line, { onError: (text) => void said.push(text) })).rejects.toThrow('exit 2')
  expect(said.join('')).toContain(message)
})

test('the gRPC port, given for the HTTP port, is recognised', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : null
  const { status, err } = await runOn({ folder: tmpdir(), url: `http://127.0.0.1:${port}` }, 'org list', {
    env: { PORTCULLIS_CLIENT_SECRET: 'x' },
  })
  await new Promise((resolve) => server.close(resolve))
  expect([status, err]).toEqual([2, expect.stringContaining('Is this the gRPC port? Give the HTTP port')])
})

test('a PDP without its database is said to be so where a client gets no token', async () => {
  const server = createPlainServer((_req, res) => {
    res.writeHead(503, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ error: 'temporarily_unavailable', error_description: DATABASE_AWAY }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : null}`
  const { status, err } = await runOn({ folder: tmpdir(), url }, 'org list', { env: { PORTCULLIS_CLIENT_SECRET: 'x' } })
  server.close()
  expect([status, err]).toEqual([
    2,
    `client admin got no token: temporarily_unavailable: ${DATABASE_AWAY}. The log of the PDP at ${url} says why\n`,
  ])
})
