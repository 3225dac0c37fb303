/** The rotation of the master key: repeated, refused, and with PDPs that serve meanwhile. */
import { describe, expect, test } from 'vitest'
import { openMasterKeys } from '../../../../../pdp/identity/issuer/keys/master-keys.ts'
import { createRecordSecrets } from '../../../../../pdp/identity/issuer/keys/record-secrets.ts'
import { loadSigningKeys } from '../../../../../pdp/identity/issuer/keys/signing-keys.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { CONTEXT, MASTER_KEY } from '../../harness.ts'
import {
  accepts,
  announced,
  fill,
  given,
  identityWith,
  LASTING,
  NEXT,
  readable,
  rotate,
  sql,
  THIRD,
  useSealedWorld,
} from './sealed-world.ts'

useSealedWorld()

describe('a rotation of the master key', () => {
  test('encrypts everything with the next key, and the identity service goes on with that key alone', async () => {
    const secret = await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    const before = await loadSigningKeys({ sql, masterKeys: masterKeysOf(MASTER_KEY) })
    const report = await rotate()
    expect(report).toMatchObject({ complete: true, unreadable: [] })
    expect(report.places.map(({ what, changed, already }) => [what, changed, already])).toEqual([
      ['sign-ins under way', 3, 0],
      ['authenticators', 1, 0],
      ['the token hook', 1, 0],
      ['identity providers', 1, 0],
      ['trusted issuers', 1, 0],
      ['credentials at transmitters', 1, 0],
      ['received streams', 1, 0],
      ['endpoints of signal streams', 1, 0],
      ['signing keys', 2, 0],
    ])
    expect([await readable(NEXT), await readable(MASTER_KEY)]).toEqual([
      [LASTING + 3, 0],
      [0, LASTING + 3],
    ])
    const sent: string[] = []
    const masterKeys = await openMasterKeys(sql, { current: NEXT, next: null })
    const identity = await identityWith(masterKeys, sent)
    expect((await loadSigningKeys({ sql, masterKeys })).activeKid).toBe(before.activeKid)
    expect(await accepts(masterKeys, secret)).toBe(true)
    await identity.recognize('an-opaque-token-of-the-partner')
    expect(sent).toEqual([`Basic ${Buffer.from('portcullis:the-partner-secret').toString('base64')}`])
    const [row] = await sql.query<{ id: string; payload: object }>('select id, payload from oidc_record limit 1')
    expect(createRecordSecrets({ masterKeys }).open('Session', row?.id ?? '', row?.payload ?? {})).toMatchObject({
      jti: expect.stringMatching(/^session-\d$/),
    })
  })

  test('changes nothing the second time', async () => {
    await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    await rotate()
    const { places, complete } = await rotate()
    expect([complete, places.every(({ changed }) => changed === 0)]).toEqual([true, true])
    expect(places.reduce((sum, { already }) => sum + already, 0)).toBe(LASTING + 3)
  })

  test('goes back the same way', async () => {
    await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    await rotate()
    await rotate({ current: NEXT, next: MASTER_KEY })
    expect(await readable(MASTER_KEY)).toEqual([LASTING + 3, 0])
  })

  test('says what it would change in a dry run, and changes nothing', async () => {
    await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    const { places } = await rotate({ dryRun: true })
    expect(places.reduce((sum, { changed }) => sum + changed, 0)).toBe(LASTING + 3)
    expect(await readable(MASTER_KEY)).toEqual([LASTING + 3, 0])
    await expect(openMasterKeys(sql, given(null))).resolves.toBeDefined()
  })

  test('names what neither key decrypts, keeps it, and is not complete while it lasts', async () => {
    await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    await sql.query("update authenticator set secret_sealed = 'v1.AAAA'")
    await sql.query(
      `update oidc_record set payload = '{"sealed": "v1.BBBB"}' where ctid = (select min(ctid) from oidc_record)`,
    )
    const report = await rotate()
    expect(report.complete).toBe(false)
    expect(report.unreadable).toMatchObject([
      { what: 'sign-ins under way', transient: true },
      { what: 'authenticators', name: 'eve', transient: false },
    ])
    await expect(openMasterKeys(sql, { current: NEXT, next: null })).rejects.toThrow('is not complete')
    await sql.query('delete from authenticator')
    expect((await rotate()).complete).toBe(true)
    await expect(openMasterKeys(sql, { current: NEXT, next: null })).resolves.toBeDefined()
  })
})

describe('PDPs that serve during a rotation', () => {
  test('all need the next key before it begins', async () => {
    await announced(await openMasterKeys(sql, given()))
    const end = await announced(await openMasterKeys(sql, given(null)))
    await expect(rotate()).rejects.toThrow(/^1 of 2 running PDPs do not have the next master key/)
    await expect(rotate({ dryRun: true })).rejects.toThrow('PORTCULLIS_NEXT_MASTER_KEY')
    expect(await readable(MASTER_KEY)).toEqual([2, 0])
    await end()
    expect((await rotate()).complete).toBe(true)
  })

  test('encrypt with the next key before the walk begins, and read what either key encrypted', async () => {
    const keys = await openMasterKeys(sql, given())
    const identity = await identityWith(keys)
    const secret = await fill(identity)
    await announced(keys)
    await rotate()
    expect(await accepts(keys, secret)).toBe(true)
    await identity.hook.configure({ url: 'https://hook.example/2', secret: 'another secret of the hook' }, CONTEXT)
    expect(await readable(NEXT)).toEqual([LASTING + 3, 0])
  })

  test.each([
    ['the former key alone after the end', given(null), 'PORTCULLIS_MASTER_KEY is not the key'],
    ['a third key', { current: THIRD, next: null }, 'PORTCULLIS_MASTER_KEY is not the key'],
    ['a third key beside the former one', { current: THIRD, next: MASTER_KEY }, 'PORTCULLIS_MASTER_KEY is not the key'],
  ])('do not start with %s', async (_, keys, message) => {
    await rotate()
    await expect(openMasterKeys(sql, keys)).rejects.toThrow(message)
  })

  test('do not start with the next key alone before the rotation', async () => {
    await openMasterKeys(sql, given(null))
    await expect(openMasterKeys(sql, { current: NEXT, next: null })).rejects.toThrow('is not the key')
  })

  test('start with both keys in either order, before and after', async () => {
    for (const step of [async () => undefined, rotate]) {
      await step()
      await expect(openMasterKeys(sql, given())).resolves.toBeDefined()
      await expect(openMasterKeys(sql, { current: NEXT, next: MASTER_KEY })).resolves.toBeDefined()
    }
  })

  test('do not begin another rotation while one is not complete', async () => {
    await rotate()
    await sql.query("update master_key set rotating_from = '0123456789abcdef'")
    await expect(rotate({ current: NEXT, next: THIRD })).rejects.toThrow('is not complete')
  })
})
