import { describe, expect, test } from 'vitest'
import {
  accessTokenClaims,
  type ClaimSources,
  idTokenClaims,
  UNBOUND,
} from '../../../pdp/identity/issuer/tokens/claims.ts'
import { BusyError, createSemaphores } from '../../../pdp/identity/limits/attempts.ts'
import { refusedScope, SERVICE_SCOPES, scopesAt } from '../../../pdp/identity/oauth/scopes.ts'
import { chooseOrganization } from '../../../pdp/identity/people/sign-in/consent.ts'
import { providerMetadata } from '../../../pdp/identity/provider/client-metadata.ts'
import { createAttempts } from '../../../pdp/shared/base/attempts.ts'
import { CLAIMS_BYTES_MAX } from '../../../pdp/shared/domain/role.ts'

const FACTS: ClaimSources = {
  organization: { id: 'acme', name: 'Acme' },
  tier: 'owner',
  held: { roles: ['approver'], permissions: ['invoices:approve'] },
  entitlements: { version: 7, values: { sso: { enabled: true } } },
}

describe('claims', () => {
  test('stand in the access token as far as they are true', () => {
    expect(accessTokenClaims(FACTS).claims).toEqual({
      org: 'acme',
      org_name: 'Acme',
      org_role: 'owner',
      roles: ['approver'],
      permissions: ['invoices:approve'],
      ent: { sso: { enabled: true } },
      ent_ver: 7,
    })
  })

  test.each([
    ['org_role', { tier: null }],
    ['roles', { held: { roles: [], permissions: ['p'] } }],
    ['permissions', { held: { roles: ['r'], permissions: [] } }],
    ['ent', { entitlements: null }],
    ['ent', { entitlements: { version: 7, values: {} } }],
    ['ent_ver', { entitlements: { version: 7, values: {} } }],
  ] satisfies [string, Partial<ClaimSources>][])('leave out %s for %j', (claim, change) => {
    expect(accessTokenClaims({ ...FACTS, ...change }).claims).not.toHaveProperty(claim)
  })

  test('are none at all when nothing is bound', () => {
    expect(accessTokenClaims(UNBOUND)).toEqual({ claims: {}, leftOut: [] })
    expect(accessTokenClaims({ ...UNBOUND, entitlements: FACTS.entitlements }).claims).toEqual({})
    expect(idTokenClaims(UNBOUND, new Set(['groups']))).toEqual({})
  })

  test('embed entitlements up to the bound, and none one byte past it', () => {
    const withText = (length: number): ClaimSources => ({
      ...FACTS,
      entitlements: { version: 7, values: { sso: { text: 'x'.repeat(length) } } },
    })
    const size = (length: number) => Buffer.byteLength(JSON.stringify(accessTokenClaims(withText(length)).claims))
    const room = CLAIMS_BYTES_MAX - size(0)
    expect(accessTokenClaims(withText(room)).leftOut).toEqual([])
    expect(size(room)).toBe(CLAIMS_BYTES_MAX)
    const past = accessTokenClaims(withText(room + 1))
    expect(past.leftOut).toEqual(['entitlements'])
    expect(past.claims).toMatchObject({ roles: ['approver'] })
    expect(past.claims).not.toHaveProperty('ent_ver')
  })

  test('of the ID token have groups for the groups scope only, and never roles or permissions', () => {
    expect(idTokenClaims(FACTS, new Set(['openid', 'groups']))).toEqual({
      org: 'acme',
      org_name: 'Acme',
      org_role: 'owner',
      groups: ['approver'],
    })
    expect(idTokenClaims(FACTS, new Set(['openid']))).not.toHaveProperty('groups')
  })
})

describe('scopes', () => {
  test.each([
    ['person', ['openid'], ['openid'], null],
    ['person', ['openid', 'offline_access'], ['openid'], null],
    ['person', ['orders:read'], ['orders:read'], null],
    ['service', ['decisions:read'], ['decisions:read'], null],
    ['person', ['decisions:read'], ['decisions:read'], 'decisions:read'],
    ['service', ['openid'], ['openid'], 'openid'],
    ['service', ['clients:write'], [], 'clients:write'],
    ['person', ['openid', 'orders:write'], ['openid', 'orders:read'], 'orders:write'],
  ] as const)('for a %s asking %j, registered %j, refuse %j', (kind, asked, registered, refused) => {
    expect(refusedScope({ kind, asked, registered })).toBe(refused)
  })

  test('of services stay with the issuer', () => {
    const registered = ['openid', 'orders:read', 'offline_access', ...SERVICE_SCOPES]
    expect(scopesAt({ isIssuer: false }, registered)).toEqual(['openid', 'orders:read'])
    expect(scopesAt({ isIssuer: true }, registered)).toEqual(['openid', 'orders:read', ...SERVICE_SCOPES])
  })
})

describe('the organization of a sign-in', () => {
  const [acme, beta] = ['acme', 'beta'].map((id) => ({ id, name: id, parent: null })) as [never, never]
  test.each([
    ['the only one', null, [acme], null, { kind: 'bound', organization: acme }],
    ['none, when there is none', null, [], null, { kind: 'unbound' }],
    ['a choice of several', null, [acme, beta], null, { kind: 'choose', from: [acme, beta] }],
    ['the one that was asked for', 'beta', [acme, beta], null, { kind: 'bound', organization: beta }],
    ['none that is not theirs', 'beta', [acme], null, { kind: 'refused' }],
    ["none for a tenant's client without a membership there", null, [], 'acme', { kind: 'refused' }],
  ] as const)('is %s', (_, asked, eligible, clientOrganization, choice) => {
    expect(chooseOrganization({ asked, eligible, clientOrganization })).toEqual(choice)
  })
})

describe('tries', () => {
  const open = (keysMax = 10) => {
    const time = { ms: 0 }
    return { time, attempts: createAttempts({ clock: () => time.ms, triesMax: 2, windowMs: 100, keysMax }) }
  }

  test('are refused one past the bound, until the window is over', () => {
    const { time, attempts } = open()
    expect([attempts.take('a'), attempts.take('a'), attempts.take('a')]).toEqual([true, true, false])
    time.ms = 99
    expect(attempts.take('a')).toBe(false)
    time.ms = 100
    expect(attempts.take('a')).toBe(true)
  })

  test('are counted per key, and given back', () => {
    const { attempts } = open()
    attempts.take('a')
    attempts.take('a')
    expect(attempts.take('b')).toBe(true)
    attempts.giveBack('a')
    expect([attempts.take('a'), attempts.take('a')]).toEqual([true, false])
    expect(() => attempts.giveBack('unknown')).not.toThrow()
  })

  test('are remembered for a bounded number of keys', () => {
    const { attempts } = open(2)
    for (const key of ['a', 'a', 'b', 'b']) attempts.take(key)
    expect([attempts.take('a'), attempts.take('b')]).toEqual([false, false])
    attempts.take('c') // the first is forgotten
    expect(attempts.take('b')).toBe(false)
    expect(attempts.take('a')).toBe(true)
  })

  test('that nobody judged push no others out of memory', () => {
    const { attempts } = open(2)
    for (const key of ['a', 'a']) attempts.take(key)
    for (const key of ['b', 'c', 'd']) {
      attempts.take(key)
      attempts.giveBack(key)
    }
    expect(attempts.take('a')).toBe(false)
  })
})

const NOBODY = { has: () => false }

describe('semaphores', () => {
  test('take turns: a line that is full keeps none of the others from its place', async () => {
    const semaphores = createSemaphores({ runningMax: 1, waitingMax: 50, known: NOBODY })
    const order: string[] = []
    const work = (kind: keyof typeof semaphores) => semaphores[kind](async () => void order.push(kind), 'a')
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const first = semaphores.decoys(() => held, 'a')
    const decoys = Array.from({ length: 50 }, () => work('decoys'))
    await expect(work('decoys')).rejects.toBeInstanceOf(BusyError)
    const others = [work('people'), work('clients'), work('people')]
    release()
    await Promise.all([first, ...decoys, ...others])
    expect(order.length).toBe(53)
    expect(order.indexOf('people')).toBeLessThan(4)
    expect(order.indexOf('clients')).toBeLessThan(4)
    expect(order.lastIndexOf('people')).toBeLessThan(7)
  })

  test.each(['decoys', 'clients', 'people'] as const)(
    'let each address have its turn in the line of %s, whoever fills it',
    async (kind) => {
      const semaphore = createSemaphores({ runningMax: 1, waitingMax: 6, known: NOBODY })[kind]
      const order: string[] = []
      const work = (address: string) =>
        semaphore(async () => void order.push(address), address).catch((err: unknown) => {
          if (!(err instanceof BusyError)) throw err
          order.push(`${address} refused`)
        })
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const first = semaphore(() => held, 'flood')
      const flood = Array.from({ length: 6 }, () => work('flood'))
      await work('flood')
      expect(order).toEqual(['flood refused'])
      // Each takes a place of the address that has the most, until nobody has more than the newcomer.
      const others = [work('b'), work('c'), work('b'), work('d')]
      await Promise.all([work('d'), work('b')])
      expect(order.toSorted()).toEqual(['b refused', 'd refused', ...Array(5).fill('flood refused')])
      order.length = 0
      release()
      await Promise.all([first, ...flood, ...others])
      expect(order).toEqual(['flood', 'b', 'c', 'd', 'flood', 'b'])
      await expect(semaphore(async () => 'free again', 'flood')).resolves.toBe('free again')
    },
  )
})

describe('a semaphore', () => {
  test('runs a bounded number at once, lets a bounded number wait, and refuses the rest', async () => {
    const semaphore = createSemaphores({ runningMax: 2, waitingMax: 1, known: NOBODY }).people
    let running = 0
    let most = 0
    const releases: (() => void)[] = []
    const work = () =>
      semaphore(async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise<void>((done) => releases.push(done))
        running -= 1
      }, 'a')
    const admitted = [work(), work(), work()]
    await expect(work()).rejects.toBeInstanceOf(BusyError)
    for (let i = 0; i < 3; i += 1) {
      releases.shift()?.()
      await admitted[i]
    }
    expect(most).toBe(2)
    await expect(semaphore(async () => 'free again', 'a')).resolves.toBe('free again')
  })

  test('frees its place when the work fails', async () => {
    const semaphore = createSemaphores({ runningMax: 1, waitingMax: 0, known: NOBODY }).people
    await expect(semaphore(() => Promise.reject(new Error('no')), 'a')).rejects.toThrow('no')
    await expect(semaphore(async () => 1, 'a')).resolves.toBe(1)
  })
})

describe("a client's metadata for oidc-provider", () => {
  const client = { id: 'c', app: null, organization: null, secretHash: 'hash' }
  test('leaves out what would make oidc-provider fetch something, and what the client may not be', () => {
    const metadata = providerMetadata({
      ...client,
      metadata: {
        jwks_uri: 'http://169.254.169.254/',
        sector_identifier_uri: 'http://169.254.169.254/',
        client_id: 'other',
        client_secret: 'clear',
        grant_types: ['client_credentials', 'implicit'],
        token_endpoint_auth_method: 'none',
        scope: 'openid own:scope',
      },
    })
    expect(metadata).toEqual({
      client_id: 'c',
      redirect_uris: [],
      grant_types: [],
      response_types: [],
      token_endpoint_auth_method: 'none',
      scope: 'openid',
      portcullis_app: null,
      portcullis_document: false,
      portcullis_organization: null,
      portcullis_scope: 'openid own:scope',
      portcullis_second_factor: false,
      portcullis_token_epoch: 0,
      portcullis_exchange_clients: [],
      portcullis_exchange_resources: [],
    })
  })
})
