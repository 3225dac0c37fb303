/** A DPoP proof names the host of its request: one for a host with routes of its own is good there, and nowhere else. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const keys = ecKeys()
let h: Harness
let token: string
beforeAll(async () => {
  h = await startHarness({
    extra: `public_url: https://app.test:8443/api
hosts: [app.test, www.app.test]`,
    routes: `GET /docs/{id}: viewer doc:{id}
GET admin.app.test/docs/{id}: owner doc:{id}`,
    script: tuples(['alice viewer doc:1', 'alice owner doc:1']),
  })
  token = await h.issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
})
afterAll(() => h.close())

async function statusOf(host: string, url: string): Promise<number> {
  const dpop = await proof({ keys, method: 'GET', url, token, clock: Date.now })
  const fields = [`Authorization: DPoP ${token}`, `DPoP: ${dpop}`]
  return (await h.send('GET /docs/1', { token: null, host, fields })).status
}

test.each([
  ['app.test', 'https://app.test:8443/api/docs/1', 200],
  ['www.app.test', 'https://app.test:8443/api/docs/1', 200],
  ['admin.app.test', 'https://admin.app.test:8443/api/docs/1', 200],
  ['ADMIN.app.test:1', 'https://Admin.App.test:8443/api/docs/1', 200],
  ['admin.app.test', 'https://app.test:8443/api/docs/1', 401],
  ['app.test', 'https://admin.app.test:8443/api/docs/1', 401],
  ['admin.app.test', 'https://admin.app.test/api/docs/1', 401],
  ['admin.app.test', 'https://admin.app.test:8443/docs/1', 401],
])('at %s, a proof for %s is answered with %i', async (host, url, status) => {
  expect(await statusOf(host, url)).toBe(status)
})
