/** An external source that misbehaves costs a decision; it never makes a wrong one. */
import type { RequestListener } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { httpEntitlements, SOURCE_BYTES_MAX } from '../../../../../pdp/engine/store/entitlements/http-source.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import type { Entitlement } from '../../../../../pdp/shared/domain/entitlement.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { GATES_SECRET, type Gates, startGates } from '../../../../support/gates.ts'
import { context, given } from '../../../../support/tuples.ts'

const ON: Entitlement = { value: { enabled: true }, enforcement: 'DecisionApi' }
const OFF: Entitlement = { value: { enabled: false }, enforcement: 'DecisionApi' }
/** For tests of what the source answers, not of when: a busy machine may take its time. */
const PATIENT_MS = 5_000
const UNAVAILABLE = expect.objectContaining({ code: 'store_unavailable' })

describe('httpEntitlements', () => {
  let store: Store
  let gates: Gates
  type Options = Partial<Parameters<typeof httpEntitlements>[0]>
  const make = (options: Options = {}) =>
    httpEntitlements({ url: gates.url, secret: GATES_SECRET, store, fetch, deadlineMs: PATIENT_MS, ...options })
  const announce = () => store.write('acme', [{ kind: 'entitlements' }], { context })
  const ask = (options?: Options) => make(options).read('acme', ['feature.a'])
  const answering =
    (body: string | Uint8Array, status = 200): RequestListener =>
    (_, res) =>
      void res.writeHead(status).end(body)

  beforeEach(async () => {
    store = memoryStore()
    gates = await startGates()
    await given(store, 'acme')
    gates.set('acme', 'feature.a', ON)
  })
  afterEach(() => gates.close())

  test('asks with its secret as a bearer token, for the keys or for all', async () => {
    await ask()
    await make().read('acme', 'all')
    expect(gates.requests.map(({ question }) => question)).toEqual([
      { organization: 'acme', keys: ['feature.a'] },
      { organization: 'acme', keys: null },
    ])
    expect(gates.requests[0]?.headers.authorization).toBe(`Bearer ${GATES_SECRET}`)
  })

  test('takes a bare boolean, and DecisionApi where no enforcement is named', async () => {
    const values = { 'feature.a': { value: false } }
    gates.misbehave(answering(JSON.stringify({ organization: 'acme', state: '1', values, more: 1 })))
    expect((await ask()).values.get('feature.a')).toEqual(OFF)
  })

  const sound = { organization: 'acme', state: '1', values: { 'feature.a': { value: { enabled: true } } } }
  test.each<[string, unknown]>([
    ['null', null],
    ['a list', [sound]],
    ['text', 'enabled'],
    ['another organization', { ...sound, organization: 'other' }],
    ['no organization', { ...sound, organization: undefined }],
    ['no state', { ...sound, state: undefined }],
    ['an empty state', { ...sound, state: '' }],
    ['a state that is a number', { ...sound, state: 1 }],
    ['a state of 257 characters', { ...sound, state: 'x'.repeat(257) }],
    ['no values', { ...sound, values: undefined }],
    ['null for values', { ...sound, values: null }],
    ['a list of values', { ...sound, values: [sound.values] }],
    ['a key that was not asked for', { ...sound, values: { 'feature.b': { value: true } } }],
    ['a malformed key', { ...sound, values: { 'feature a': { value: true } } }],
    ['null for an entitlement', { ...sound, values: { 'feature.a': null } }],
    ['true for an entitlement', { ...sound, values: { 'feature.a': true } }],
    ['no value', { ...sound, values: { 'feature.a': {} } }],
    ['a value that is text', { ...sound, values: { 'feature.a': { value: 'true' } } }],
    ['a value that is a list', { ...sound, values: { 'feature.a': { value: [] } } }],
    ['a value that is null', { ...sound, values: { 'feature.a': { value: null } } }],
    ['an unknown enforcement', { ...sound, values: { 'feature.a': { value: true, enforcement: 'Maybe' } } }],
    ['null for an enforcement', { ...sound, values: { 'feature.a': { value: true, enforcement: null } } }],
  ])('fails on %s', async (_, answer) => {
    gates.misbehave(answering(JSON.stringify(answer)))
    await expect(ask()).rejects.toEqual(UNAVAILABLE)
  })

  test.each<[string, RequestListener]>([
    ['an empty body', answering('')],
    ['half of the answer', answering(JSON.stringify(sound).slice(0, 40))],
    ['bytes that are no UTF-8', answering(Buffer.from([0x22, 0xff, 0x22]))],
    ['a byte more than the cap', answering(JSON.stringify(sound).padEnd(SOURCE_BYTES_MAX + 1))],
    ['status 204', answering('', 204)],
    ['status 201', answering(JSON.stringify(sound), 201)],
    ['status 401', answering('{}', 401)],
    ['status 404', answering(JSON.stringify({ ...sound, values: {} }), 404)],
    ['status 500', answering('{}', 500)],
    ['a redirect', (_, res) => void res.writeHead(307, { location: gates.url }).end()],
    ['no answer', () => undefined],
    ['half an answer and then nothing', (_, res) => void res.writeHead(200).write('{')],
    ['a connection that ends', (req) => void req.socket.destroy()],
  ])('fails on %s', async (_, listener) => {
    gates.misbehave(listener)
    await expect(ask({ deadlineMs: 1_000 })).rejects.toEqual(UNAVAILABLE)
    expect(gates.requests.length).toBe(1)
  })

  test('takes an answer as large as the cap', async () => {
    gates.misbehave(answering(JSON.stringify(sound).padEnd(SOURCE_BYTES_MAX)))
    expect((await ask()).values.size).toBe(1)
  })

  test('fails on a wrong secret, which its errors do not repeat', async () => {
    const secret = 'wrong-secret-0123456789'
    const error = await make({ secret })
      .read('acme', ['feature.a'])
      .catch((err: unknown) => err)
    expect(error).toBeInstanceOf(PdpError)
    expect(`${error} ${error instanceof Error ? error.cause : ''}`).not.toContain(secret)
    expect(make({ secret }).name).not.toContain(secret)
  })

  test('has another name for another address, since another system may be there', () => {
    expect(make({ url: `${gates.url}/other` }).name).not.toBe(make().name)
  })

  test('ends its wait for a fetch that heeds no signal', async () => {
    const source = make({ fetch: () => new Promise(() => undefined), deadlineMs: 300 })
    await expect(source.read('acme', ['feature.a'])).rejects.toEqual(UNAVAILABLE)
  })

  test('refuses more than 128 requests of one tenant, and 256 of all, at once, and is usable afterwards', async () => {
    const asked: string[] = []
    const hang: Options['fetch'] = (_url, init) => {
      asked.push(JSON.parse('body' in init ? String(init.body) : '').organization)
      return new Promise(() => undefined)
    }
    let nowMs = 0
    const source = make({ fetch: hang, clock: () => nowMs, deadlineMs: 300 })
    for (const organization of ['acme~eu', 'beta', 'gamma']) await given(store, organization)
    // What a tenant makes below its own organization is of the same share.
    const wanted = { acme: 70, 'acme~eu': 70, beta: 100, gamma: 40 }
    const all = await Promise.allSettled(
      Object.entries(wanted).flatMap(([organization, length]) =>
        Array.from({ length }, () => source.read(organization, ['feature.a'])),
      ),
    )
    expect(all.every(({ status }) => status === 'rejected')).toBe(true)
    const countOf = (...names: readonly string[]) => asked.filter((one) => names.includes(one)).length
    expect([countOf('acme', 'acme~eu'), countOf('beta'), countOf('gamma')]).toEqual([128, 100, 28])
    nowMs += 500
    await source.read('acme', ['feature.a']).catch(() => undefined)
    expect(asked.length).toBe(257)
  })

  describe('that does not answer', () => {
    let nowMs = 0
    const source = (options: Options = {}) => make({ clock: () => nowMs, ...options })

    test('is left alone after three failures in a row, and asked again by one after half a second', async () => {
      const asked = source()
      const read = () => asked.read('acme', ['feature.a'])
      gates.misbehave(answering('{}', 500))
      for (let i = 0; i < 10; i++) await expect(read()).rejects.toEqual(UNAVAILABLE)
      expect(gates.requests.length).toBe(3)
      nowMs += 500
      const again = await Promise.allSettled(Array.from({ length: 5 }, read))
      expect([again.every(({ status }) => status === 'rejected'), gates.requests.length]).toEqual([true, 4])
      gates.misbehave(null)
      await expect(read()).rejects.toEqual(UNAVAILABLE)
      nowMs += 1_000
      expect((await read()).values.get('feature.a')).toEqual(ON)
      expect((await read()).values.size).toBe(1)
    })

    test('costs its deadline a few questions, not all', async () => {
      gates.misbehave(() => undefined)
      const asked = source({ deadlineMs: 500 })
      const startedMs = performance.now()
      for (let i = 0; i < 50; i++) await expect(asked.read('acme', ['feature.a'])).rejects.toEqual(UNAVAILABLE)
      expect([gates.requests.length, performance.now() - startedMs < 10_000]).toEqual([3, true])
    })

    test.each([
      ['a wrong answer', answering('{}')],
      ['no JSON', answering('<html>')],
      ['a refusal', answering('{}', 403)],
    ])('is not taken for dead because of %s', async (_, listener) => {
      gates.misbehave(listener)
      const asked = source()
      for (let i = 0; i < 10; i++) await expect(asked.read('acme', ['feature.a'])).rejects.toEqual(UNAVAILABLE)
      expect(gates.requests.length).toBe(10)
    })
  })

  test('mints tokens from what it keeps, and asks for the gates of a new version once', async () => {
    gates.set('acme', 'feature.a', { value: { enabled: true }, enforcement: 'Claims' })
    const pdp = createPdp({ store, entitlements: make() })
    for (let i = 0; i < 5; i++)
      expect(await pdp.claimsEntitlements('acme')).toEqual({ version: 0, values: { 'feature.a': { enabled: true } } })
    expect(gates.requests.length).toBe(1)
    gates.set('acme', 'feature.a', null)
    await announce()
    expect(await pdp.claimsEntitlements('acme')).toEqual({ version: 1, values: {} })
    expect(gates.requests.length).toBe(2)
  })

  test('reads anew when a change is announced while it reads', async () => {
    gates.misbehave(async (_, res) => {
      const before = JSON.stringify(gates.answer('acme', ['feature.a']))
      gates.misbehave(null)
      gates.set('acme', 'feature.a', OFF)
      await announce()
      res.end(before)
    })
    expect(await ask()).toMatchObject({ version: 1, values: new Map([['feature.a', OFF]]) })
    expect(gates.requests.length).toBe(2)
  })

  test('gives up on a source that announces changes all the time', async () => {
    gates.misbehave(async (_, res) => {
      await announce()
      res.end(JSON.stringify(gates.answer('acme', ['feature.a'])))
    })
    await expect(ask()).rejects.toEqual(UNAVAILABLE)
    expect(gates.requests.length).toBe(5)
  })

  test('answers no decision from a value that it cannot have, and keeps what it had', async () => {
    const pdp = createPdp({ store, entitlements: make() })
    expect((await pdp.entitlement('acme', 'feature.a'))?.boolean()).toBe(true)
    gates.misbehave(answering('{}', 500))
    expect((await pdp.entitlement('acme', 'feature.a'))?.boolean()).toBe(true)
    await announce()
    await expect(pdp.entitlement('acme', 'feature.a')).rejects.toEqual(UNAVAILABLE)
    gates.misbehave(null)
    expect((await pdp.entitlement('acme', 'feature.a'))?.boolean()).toBe(true)
  })

  test('never mixes values from before and after a change that is not announced yet', async () => {
    gates.set('acme', 'feature.b', ON)
    const pdp = createPdp({ store, entitlements: make() })
    await pdp.entitlement('acme', 'feature.a')
    for (const key of ['feature.a', 'feature.b']) gates.set('acme', key, OFF)
    const { entitlements } = await pdp.decide({
      organization: 'acme',
      subject: { type: 'user', id: 'u' },
      entitlements: ['feature.a', 'feature.b'],
    })
    expect([...entitlements.values()].map((result) => result?.boolean())).toEqual([false, false])
  })
})
