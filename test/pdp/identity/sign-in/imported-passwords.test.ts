/** People whose password hashes another system made sign in with the same password, and have a hash of ours from then on. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPasswordDecoys } from '../../../../pdp/identity/keys/password-decoys.ts'
import { verifySecret } from '../../../../pdp/identity/keys/password-hash.ts'
import { masterKeysOf } from '../../../../pdp/process/encryption.ts'
import { type Browser, createBrowser } from '../../../support/browser.ts'
import { cheapHash } from '../../../support/cheap-hash.ts'
import { CONTEXT, DECOY_HASH, logInto, MASTER_KEY, openWorld, REDIRECT, type World } from '../harness.ts'

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
  const decoys = (costs: readonly { cost: string; count: number }[]) => {
    let reads = 0
    const made = createPasswordDecoys({
      sql: {
        query: async <Row extends object>() => {
          reads += 1
          return costs as unknown as readonly Row[]
        },
      },
      own: DECOY_HASH,
      masterKeys: masterKeysOf(MASTER_KEY),
      clock: () => 0,
      log: logInto([]),
    })
    return { ...made, reads: () => reads }
  }

  test('costs what our hashes cost where all are ours', async () => {
    expect(await decoys([]).of('a@x.example')).toBe(DECOY_HASH)
  })

  test('costs the same each time, and each cost is as frequent as among people', async () => {
    const made = decoys([
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
    expect(made.reads()).toBe(1)
  })

  test('learns the costs of the stored hashes from the database', async () => {
    await imported(BCRYPT)
    const made = createPasswordDecoys({
      sql: world.sql,
      own: DECOY_HASH,
      masterKeys: masterKeysOf(MASTER_KEY),
      clock: () => 0,
      log: logInto([]),
    })
    const forms = new Set<string>()
    for (let i = 0; i < 200; i += 1) forms.add((await made.of(`a${i}@x.example`)).slice(0, 7))
    expect(forms).toContain('$2b$04$')
    expect(forms).toContain('$scrypt')
  })
})
