/** Whose tries count together when proxies stand in front. */
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClientOf } from '../../../../../pdp/identity/limits/limit-address.ts'
import { createNetworks, parseNetwork } from '../../../../../pdp/shared/base/addresses.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { openWorld, PASSWORD, REDIRECT, type World } from '../../harness.ts'

type Fields = { readonly [name: string]: string }
const from = (address: string): Fields => ({ 'x-forwarded-for': address })

function visitor(world: World, headers: Fields) {
  const browser = createBrowser(world.issuer)
  const query = new URLSearchParams({
    ...{ client_id: 'web', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
  })
  return {
    async signIn(email: string, password: string): Promise<number> {
      const path = (await browser.send(`/oauth/authorize?${query}`, { headers })).headers.get('location') ?? ''
      const form = { action: 'continue', email, password }
      return (await browser.send(path, { form, headers })).status
    },
    typeCode: async (): Promise<number> =>
      (await browser.send('/oauth/device?user_code=BBBB-BBBB', { headers })).status,
  }
}
async function useUp(world: World, email: string, fieldsOf: (i: number) => Fields): Promise<void> {
  for (let i = 0; i < 10; i += 1) await visitor(world, fieldsOf(i)).signIn(email, `wrong ${i}`)
}

describe('behind a proxy that is trusted', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
  })
  afterAll(() => world.close())

  test('a stranger who guesses at an account does not use up the tries of another address', async () => {
    await useUp(world, 'eve@x.example', () => from('203.0.113.6'))
    expect(await visitor(world, from('203.0.113.6')).signIn('eve@x.example', PASSWORD)).toBe(429)
    expect(await visitor(world, from('203.0.113.7')).signIn('eve@x.example', PASSWORD)).toBe(303)
  })

  test('whoever puts addresses in front of their own has no more tries', async () => {
    await useUp(world, 'cy@x.example', (i) => from(`198.51.100.${i}, 203.0.113.8, 10.0.0.2`))
    expect(await visitor(world, from('203.0.113.8')).signIn('cy@x.example', PASSWORD)).toBe(429)
  })

  test('a chain that cannot be read counts as the proxy, whatever it says', async () => {
    await useUp(world, 'dan@x.example', (i) => ({ ...from(`198.51.100.${i}`), forwarded: `for=198.51.100.${i + 20}` }))
    expect(await visitor(world, from('nobody')).signIn('dan@x.example', PASSWORD)).toBe(429)
    expect(await visitor(world, {}).signIn('dan@x.example', PASSWORD)).toBe(429)
    expect(await visitor(world, from('203.0.113.9')).signIn('dan@x.example', PASSWORD)).toBe(303)
  })

  test('a stranger who guesses at device codes does not close the page to another address', async () => {
    const guesser = visitor(world, from('203.0.113.6'))
    for (let i = 0; i < 100; i += 1) await guesser.typeCode()
    expect(await guesser.typeCode()).toBe(429)
    expect(await visitor(world, from('203.0.113.7')).typeCode()).toBe(200)
  })
})

describe('a proxy that nobody named', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ trustedProxies: ['10.0.0.0/8'] })
  })
  afterAll(() => world.close())

  test('says nothing that counts: forged addresses have no tries of their own', async () => {
    await useUp(world, 'eve@x.example', (i) => ({ ...from(`198.51.100.${i}`), forwarded: `for=198.51.100.${i}` }))
    expect(await visitor(world, from('203.0.113.7')).signIn('eve@x.example', PASSWORD)).toBe(429)
    const guess = (i: number) => visitor(world, from(`198.51.100.${i}`)).typeCode()
    for (let i = 0; i < 100; i += 1) await guess(i)
    expect(await guess(200)).toBe(429)
  })
})

describe('the address that a try counts for', () => {
  const clientOf = createClientOf(createNetworks(['10.0.0.0/8', 'fd00::/64'].map(parseNetwork)))
  const counted = (remoteAddress: string | undefined, ...rawHeaders: readonly string[]) =>
    clientOf({ socket: { remoteAddress }, rawHeaders } as unknown as IncomingMessage)

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    [undefined, ''],
  ])('of %s is %s', (remoteAddress, expected) => {
    expect(counted(remoteAddress)).toBe(expected)
  })

  test.each<[string, string[], string]>([
    ['the nearest that is no proxy', ['X-Forwarded-For', '6.6.6.6, 192.0.2.1, 10.1.1.1'], '192.0.2.1'],
    ['over several fields', ['X-Forwarded-For', '6.6.6.6', 'x-forwarded-for', '192.0.2.1'], '192.0.2.1'],
    ['a network of IPv6', ['Forwarded', 'for="[2001:db8:1:2::6]:80"'], '2001:db8:1:2::/64'],
    ['what both kinds say', ['X-Forwarded-For', '192.0.2.1', 'Forwarded', 'for=192.0.2.1;proto=http'], '192.0.2.1'],
    ['a scheme alone', ['X-Forwarded-Proto', 'https'], '10.0.0.9'],
    ['nobody known', ['X-Forwarded-For', '6.6.6.6, unknown'], '10.0.0.9'],
    ['a name', ['X-Forwarded-For', '192.0.2.1, client.test'], '10.0.0.9'],
    ['nothing behind a comma', ['X-Forwarded-For', '192.0.2.1,'], '10.0.0.9'],
    ['octal numbers', ['X-Forwarded-For', '0192.0.2.1'], '10.0.0.9'],
    ['a broken Forwarded beside it', ['X-Forwarded-For', '192.0.2.1', 'Forwarded', 'for="'], '10.0.0.9'],
    ['two that differ', ['X-Forwarded-For', '192.0.2.1', 'Forwarded', 'for=6.6.6.6'], '10.0.0.9'],
    ['another field', ['X-Real-IP', '192.0.2.1', 'Client-IP', '192.0.2.1'], '10.0.0.9'],
  ])('of a request in which a proxy says %s', (_name, raw, expected) => {
    expect(counted('::ffff:10.0.0.9', ...raw)).toBe(expected)
    expect(counted('192.0.2.200', ...raw)).toBe('192.0.2.200')
  })
})
