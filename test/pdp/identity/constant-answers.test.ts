/** Answers of the issuer that are the same for everybody. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, type World } from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const PATHS = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server', '/oauth/jwks']

test.each(PATHS)('%s is the same bytes for all who ask, and 304 to who has them', async (path) => {
  const [first, second] = [await fetch(world.issuer + path), await fetch(`${world.issuer}${path}?other`)]
  const tag = first.headers.get('etag') ?? ''
  expect([first.status, tag.length]).toEqual([200, 29])
  const fields = (one: Response) =>
    ['content-type', 'cache-control', 'access-control-allow-origin', 'vary', 'etag'].map((name) =>
      one.headers.get(name),
    )
  expect(fields(second)).toEqual(fields(first))
  expect(await second.text()).toBe(await first.text())
  const again = await fetch(world.issuer + path, { headers: { 'if-none-match': tag, origin: 'https://app.example' } })
  expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, tag, ''])
  const head = await fetch(world.issuer + path, { method: 'HEAD' })
  expect([head.status, head.headers.get('etag')]).toEqual([200, tag])
  const other = await fetch(world.issuer + path, { headers: { 'if-none-match': '"other"' } })
  expect(other.status).toBe(200)
})
