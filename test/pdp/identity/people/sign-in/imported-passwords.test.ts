/** People whose password hashes another system made sign in with the same password, and have a hash of ours from then on. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPasswordDecoys } from '../../../../../pdp/identity/people/passwords/password-decoys.ts'
import { verifySecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { type Browser, createBrowser } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, DECOY_HASH, logInto, MASTER_KEY, openWorld, REDIRECT, type World } from '../../harness.ts'

const PASSWORD = 'pässword 1'
const BCRYPT = '$2b$04$fmFt4CKbJ1gUfLZWhqQwr.RFEJeRjmCMaQtbS/L7MrxVS8PaDfOvS'
const ARGON2 = '$argon2id$v=19$m=64,t=1,p=1$bCe8AXvyaqlYWhEuK8hwDw$WEyvUcs5fxsWW4a7Fdhe5rKwukRz0BUUdFspGhB617Q'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())
let browser: Browser
let count = 0
beforeEach(() => {
  browser = createBrowser(world.issuer)
})

async function imported(passwordHash: string): Promise<string> {
  const id = `imported-${++count}`
  const user = { id, email: `${id}@x.example`, emailVerified: true, name: id, passwordHash }
  expect(await world.directory.importUsers([user], { context: CONTEXT, dryRun: false })).toEqual([])
  return id
}
async function signIn(id: string, password: string): Promise<number> {
  const query = new URLSearchParams({
    ...{ client_id: 'web', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
  })
  const path = (await browser.send(`/oauth/authorize?${query}`)).headers.get('location') ?? ''
  return (await browser.send(path, { form: { action: 'login', email: `${id}@x.example`, password } })).status
}
const stored = async (id: string) => (await world.directory.userByEmail(`${id}@x.example`))?.passwordHash ?? ''

describe.each([
  ['bcrypt', BCRYPT],
  ['Argon2', ARGON2],
])('a hash of %s', (_name, hash) => {
  test('lets its person in, and is one of ours from then on', async () => {
    const id = await imported(hash)
    expect(await signIn(id, PASSWORD)).toBe(303)
    expect(await stored(id)).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$/)
    expect(await verifySecret(PASSWORD, await stored(id))).toBe(true)
    expect(world.log.some((line) => line.includes('password_rehashed') && line.includes(id))).toBe(true)
  })

  test('stays as it is when the password is wrong', async () => {
    const id = await imported(hash)
    expect(await signIn(id, 'wrong')).toBe(400)
    expect(await stored(id)).toBe(hash)
  })
})

test('a password that was changed meanwhile is not overwritten by the hash of the former one', async () => {
  const id = await imported(BCRYPT)
  const changed = cheapHash('another')
  await world.directory.putUser(
    { id, email: `${id}@x.example`, emailVerified: true, name: id, passwordHash: changed },
    CONTEXT,
  )
  await world.directory.replacePasswordHash(id, { stored: BCRYPT, hash: cheapHash(PASSWORD) })
  expect(await stored(id)).toBe(changed)
})

test('no hash of ours is made anew', async () => {
  const id = await imported(cheapHash(PASSWORD))
  const before = await stored(id)
  expect(await signIn(id, PASSWORD)).toBe(303)
  expect(await stored(id)).toBe(before)
})

describe('an address that nobody has', () => {
  const decoys = (read: () => Promise<readonly { cost: string; count: number }[]>) => {
    const world = { reads: 0, now: 0 }
    const made = createPasswordDecoys({
      sql: {
        query: async <Row extends object>() => {
          world.reads += 1
          return (await read()) as unknown as readonly Row[]
        },
      },
      own: DECOY_HASH,
      masterKeys: masterKeysOf(MASTER_KEY),
      clock: () => world.now,
      log: logInto([]),
    })
    return { of: made.of, world }
  }
  const ONLY_BCRYPT = [{ cost: '$2b$12$', count: 1 }]
  const MINUTE_MS = 60_000

  test('costs what our hashes cost where all are ours', async () => {
    expect(await decoys(async () => []).of('a@x.example')).toBe(DECOY_HASH)
  })

  test('costs the same each time, and each cost is as frequent as among people', async () => {
    const made = decoys(async () => [
      { cost: '$2b$12$', count: 3 },
      { cost: '$argon2id$v=19$m=64,t=1,p=1 43', count: 1 },
    ])
    let bcrypt = 0
    for (let i = 0; i < 400; i += 1) {
      const [first, second] = [await made.of(`a${i}@x.example`), await made.of(`a${i}@x.example`)]
      expect(first.slice(0, 7)).toBe(second.slice(0, 7))
      if (first.startsWith('$2b$12$')) bcrypt += 1
      else expect(first).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
    }
    expect(bcrypt).toBeGreaterThan(240)
    expect(bcrypt).toBeLessThan(360)
    expect(made.world.reads).toBe(1)
  })

  test('costs what people cost from the first one on, however many come before the costs are read', async () => {
    const answers = Promise.withResolvers<typeof ONLY_BCRYPT>()
    const made = decoys(() => answers.promise)
    const all = Promise.all(['a', 'b', 'c'].map((name) => made.of(name)))
    answers.resolve(ONLY_BCRYPT)
    for (const decoy of await all) expect(decoy).toMatch(/^\$2b\$12\$/)
    expect(made.world.reads).toBe(1)
  })

  test('keeps its cost while the costs are read again, and when that fails', async () => {
    let answer: () => Promise<typeof ONLY_BCRYPT> = async () => ONLY_BCRYPT
    const made = decoys(() => answer())
    await made.of('a')
    answer = () => new Promise(() => undefined)
    made.world.now = MINUTE_MS
    expect(await made.of('a')).toMatch(/^\$2b\$12\$/)
    expect(made.world.reads).toBe(2)

    const failing = decoys(() => answer())
    answer = async () => ONLY_BCRYPT
    await failing.of('a')
    answer = () => Promise.reject(new Error('no'))
    for (const reads of [2, 3]) {
      failing.world.now += MINUTE_MS
      for (const name of ['a', 'b', 'c']) expect(await failing.of(name)).toMatch(/^\$2b\$12\$/)
      expect(failing.world.reads).toBe(reads)
    }
  })

  test('is ours while the costs could never be read, and each one tries again', async () => {
    let answer: () => Promise<typeof ONLY_BCRYPT> = () => Promise.reject(new Error('no'))
    const made = decoys(() => answer())
    expect(await made.of('a')).toBe(DECOY_HASH)
    answer = async () => ONLY_BCRYPT
    expect(await made.of('a')).toMatch(/^\$2b\$12\$/)
  })

  test('learns the costs of the stored hashes from the database', async () => {
    await imported(BCRYPT)
    const forms = await sharesOf(2_000)
    expect(forms.get('$2b$04$')).toBeGreaterThan(0)
    expect(forms.get('$scrypt')).toBeGreaterThan(0)
  })

  test('costs as often what people cost when there are more than are counted', async () => {
    const many = (prefix: string, count: number, passwordHash: string) =>
      Array.from({ length: count }, (_, i) => ({
        ...{ id: `${prefix}-${i}`, email: null, emailVerified: false, name: null, passwordHash },
      }))
    const ours = `$scrypt$ln=15,r=8,p=3$${'A'.repeat(22)}$${'A'.repeat(43)}`
    const people = [...many('a', 300, BCRYPT), ...many('b', 900, ours)]
    expect(await world.directory.importUsers(people, { context: CONTEXT, dryRun: false })).toEqual([])
    await world.sql.query('analyze user_account')
    const forms = await sharesOf(10)
    const share = (forms.get('$2b$04$') ?? 0) / 400
    expect(share).toBeGreaterThan(0.15)
    expect(share).toBeLessThan(0.35)
  })

  async function sharesOf(countedMax: number): Promise<ReadonlyMap<string, number>> {
    const made = createPasswordDecoys({
      sql: world.sql,
      own: DECOY_HASH,
      masterKeys: masterKeysOf(MASTER_KEY),
      clock: () => 0,
      log: logInto([]),
      countedMax,
    })
    const forms = new Map<string, number>()
    for (let i = 0; i < 400; i += 1) {
      const form = (await made.of(`a${i}@x.example`)).slice(0, 7)
      forms.set(form, (forms.get(form) ?? 0) + 1)
    }
    return forms
  }
})
