/** The client that `sign_in` of a route file needs: `setup` makes it, and a misspelt one is found. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
beforeAll(async () => {
  served = await servePdp()
  await writeFile(join(served.folder, 'keys'), 'k'.repeat(40))
  await writeFile(join(served.folder, 'web.secret'), 'the-secret-of-web-1234\n')
})
afterAll(() => served.close())

const PUBLIC = 'https://app.example.com'
const write = (client: string, more = ''): Promise<void> =>
  writeFile(
    join(served.folder, 'portcullis.yaml'),
    `portcullis: v1
resource: ${PUBLIC}
issuers: [{issuer: "${served.url}"}]
upstream: http://127.0.0.1:3000
pdp: {address: "127.0.0.1:9090", insecure: true}
sign_in: {keys_file: keys, providers: [{issuer: "${served.url}", client_id: ${client}${more}}]}
routes:
  GET /me: signed_in
`,
  )
const setup = () => served.run(`setup acme ${served.folder}/portcullis.yaml --json`)
const client = async (id: string) => JSON.parse(await served.good(`client get ${id} --json`))
const doctor = async () => {
  const { out } = await served.run(`doctor --route-file ${served.folder}/portcullis.yaml --json`)
  const found: { check: string; state: string; said: string; advice?: string }[] = JSON.parse(out)
  return found.filter(({ check }) => check.startsWith('sign_in'))
}

test('setup makes the client as the route file has it, once', async () => {
  await write('web', ', client_secret_file: web.secret')
  const first = await setup()
  expect(first.status).toBe(0)
  const made = JSON.parse(first.out)
  expect(made).toContainEqual(expect.objectContaining({ what: 'client', done: 'created' }))
  expect(made).toContainEqual(
    expect.objectContaining({ what: 'secret', said: expect.stringContaining('write it to web.secret') }),
  )
  expect(await client('web')).toMatchObject({
    redirect_uris: [`${PUBLIC}/.portcullis/callback`],
    post_logout_redirect_uris: [`${PUBLIC}/.portcullis/signed-out`],
    backchannel_logout_uri: `${PUBLIC}/.portcullis/backchannel-logout`,
    backchannel_logout_session_required: true,
    scope: 'openid',
  })
  expect(JSON.parse((await setup()).out)).toContainEqual(expect.objectContaining({ what: 'client', done: 'there' }))
  expect(await doctor()).toEqual([expect.objectContaining({ check: 'sign_in client web', state: 'ok' })])
})

test('setup adds the address of another provider’s name, and keeps those that are there', async () => {
  await write('web', ', client_secret_file: web.secret, name: own')
  expect((await doctor())[0]).toMatchObject({
    state: 'failed',
    said: expect.stringContaining('does not know the client, or not the redirect URI'),
  })
  expect(JSON.parse((await setup()).out)).toContainEqual(expect.objectContaining({ what: 'client', done: 'written' }))
  expect((await client('web')).redirect_uris).toEqual([
    `${PUBLIC}/.portcullis/callback`,
    `${PUBLIC}/.portcullis/callback/own`,
  ])
  expect((await doctor())[0]).toMatchObject({ state: 'ok' })
})

test('a misspelt client is found by setup, doctor and check --pdp, and nothing is made', async () => {
  await write('wbe')
  const { status, err } = await setup()
  expect(status).not.toBe(0)
  expect(JSON.parse(err).error.message).toContain('did you mean "web"?')
  expect((await served.run('client get wbe')).status).not.toBe(0)
  expect(await doctor()).toEqual([
    expect.objectContaining({ state: 'failed', said: expect.stringContaining('did you mean "web"?') }),
  ])
})

test('without a secret in the file it is public, and an issuer of others is not the PDP’s to serve', async () => {
  await write('portal')
  expect((await setup()).status).toBe(0)
  expect(await client('portal')).toMatchObject({ token_endpoint_auth_method: 'none' })
})
