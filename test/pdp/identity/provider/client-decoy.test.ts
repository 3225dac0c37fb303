import type { Provider } from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Context } from '../../../../pdp/identity/oauth/request.ts'
import { generateSecret, hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { installClientDecoy } from '../../../../pdp/identity/provider/client-decoy.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { cheapHash } from '../../../support/passwords/cheap-hash.ts'
import { openWorld, postToken, SECRET, type World } from '../harness.ts'

const REFUSED = [401, { error: 'invalid_client', error_description: 'client authentication failed' }]

describe('over HTTP', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
    const metadata = { grant_types: ['client_credentials'] }
    await world.putClient({ id: 'chosen', metadata, secretHash: cheapHash(SECRET) })
  })
  afterAll(() => world.close())

  test.each(['robot', 'chosen', 'unknown-1', 'unknown-2', 'constructor'])(
    'a wrong secret of %s is answered alike',
    async (id) => {
      const form = { grant_type: 'client_credentials' }
      const basic = await postToken(world, form, { id, secret: 'wrong' })
      const posted = await postToken(world, { ...form, client_id: id, client_secret: 'wrong' })
      expect([basic.status, basic.body]).toEqual(REFUSED)
      expect([posted.status, posted.body]).toEqual(REFUSED)
    },
  )
})

describe('the work for a secret that no client has', () => {
  type Middleware = (ctx: Context, next: () => Promise<void>) => Promise<void>
  let run: Middleware
  let slowCount = 0
  beforeAll(async () => {
    const decoys = { generated: hashGeneratedSecret(generateSecret()), chosen: cheapHash(generateSecret()) }
    const use = (middleware: Middleware): void => {
      run = middleware
    }
    const secretSemaphore = async <T>(work: () => Promise<T>): Promise<T> => {
      slowCount += 1
      return work()
    }
    const deps = { masterKeys: masterKeysOf(Buffer.alloc(32, 7)), secretSemaphore, clientOf: () => '192.0.2.1', decoys }
    installClientDecoy({ use } as unknown as Provider, deps)
  })
  async function isSlow(ctx: object): Promise<boolean> {
    const before = slowCount
    await run(ctx as Context, async () => undefined)
    return slowCount > before
  }
  const body = { error: 'invalid_client' }
  const posted = (id: string, rest: object = {}) => ({
    body,
    req: { headers: {} },
    oidc: { params: { client_id: id, client_secret: 'wrong' }, ...rest },
  })
  const basic = (text: string) => ({
    body,
    req: { headers: { authorization: `Basic ${Buffer.from(text).toString('base64')}` } },
    oidc: { params: {} },
  })

  test('is slow for some ids and quick for others, and the same each time and in each form', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => `unknown-${i}`)
    const kinds: boolean[] = []
    for (const id of ids) kinds.push(await isSlow(posted(id)))
    expect(new Set(kinds)).toEqual(new Set([true, false]))
    const again: boolean[] = []
    for (const id of ids) again.push(await isSlow(basic(`${id}:other:wrong`)))
    expect(again).toEqual(kinds)
  })

  test('is done only where none was compared before', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => `unknown-${i}`)
    const slow: string[] = []
    for (const id of ids) if (await isSlow(posted(id))) slow.push(id)
    const id = slow[0] ?? ''
    expect(await isSlow(posted(id, { client: { clientAuthMethod: 'client_secret_basic' } }))).toBe(false)
    expect(await isSlow({ ...posted(id), body: { error: 'invalid_grant' } })).toBe(false)
    expect(await isSlow({ ...posted(id), body: { access_token: 'x' } })).toBe(false)
    expect(await isSlow(basic(id))).toBe(false)
    expect(await isSlow(posted(id, { client: { clientAuthMethod: 'private_key_jwt' } }))).toBe(true)
  })
})
