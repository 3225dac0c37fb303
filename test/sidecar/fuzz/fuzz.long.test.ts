import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { headers, type Pair, pseudo, sendFrames } from '../support/raw-http2.ts'
import {
  fuzz,
  gateBehindPrefix,
  gateOf,
  WITH_OVERLAPS,
  WITH_PARTS,
  WITH_REST,
  WITH_SLASHES,
  WITHOUT_REST,
} from './differential.ts'
import { openHttp2Gate } from './over-http2.ts'
import { pick, seeded } from './targets.ts'

describe('differential fuzz (short; npm run fuzz -- --parser bypass is the long one)', () => {
  test.each([
    ['with', WITH_REST],
    ['without', WITHOUT_REST],
    ['with slashes at the end and', WITH_SLASHES],
    ['with overlaps and', WITH_OVERLAPS],
    ['with parts of segments and', WITH_PARTS],
  ])('finds no handler that ran for another route, %s **', async (_name, paths) => {
    const { bypasses, sent } = await fuzz({ paths, gate: gateOf(paths), count: 2_000, seed: 11 })
    expect(bypasses).toEqual([])
    expect(sent).toBeGreaterThan(100)
  })

  test.each([WITH_REST, WITHOUT_REST, WITH_SLASHES])('finds none behind strip_path either', async (...paths) => {
    const { bypasses, sent } = await fuzz({ paths, gate: gateBehindPrefix(paths), count: 1_000, seed: 14 })
    expect(bypasses).toEqual([])
    expect(sent).toBeGreaterThan(100)
  })

  test.each([WITH_REST, WITHOUT_REST, WITH_SLASHES])('finds none below add_path either', async (...paths) => {
    const gate = gateBehindPrefix(paths, '/base')
    const { bypasses, sent } = await fuzz({ paths, gate, below: '/base', count: 1_000, seed: 15 })
    expect(bypasses).toEqual([])
    expect(sent).toBeGreaterThan(100)
  })

  test('finds none of requests over HTTP/2 either', async () => {
    const over2 = await openHttp2Gate(WITH_REST)
    const { bypasses, sent } = await fuzz({ paths: WITH_REST, gate: over2.gate, count: 400, seed: 13 })
    await over2.close()
    expect(bypasses).toEqual([])
    expect(sent).toBeGreaterThan(100)
  })

  test('finds planted laxity: case folded before matching', async () => {
    const lower = (segments: readonly string[]): readonly string[] => segments.map((text) => text.toLowerCase())
    const { bypasses } = await fuzz({ paths: WITH_REST, gate: gateOf(WITH_REST, lower), count: 4_000, seed: 12 })
    expect(bypasses.length).toBeGreaterThan(0)
  })
})

describe('header fuzz', () => {
  let h: Harness
  let token: string
  beforeAll(async () => {
    h = await startHarness({ routes: 'GET /a: scope invoices:read', script: tuples([]) })
    token = await h.issuer.token()
  })
  afterAll(() => h.close())

  const NAMES = [
    'x-auth-subject',
    'x-auth-scope',
    'x-auth-organization',
    'x-auth-client',
    'x-forwarded-for',
    'forwarded',
  ]
  const MORE = ['x-original-url', 'x-rewrite-url', 'x-http-method-override', 'x-middleware-subrequest', 'x-real-ip']

  test('no field that folds to an identity field reaches the upstream, but ours', async () => {
    const random = seeded(5)
    const mutate = (name: string): string =>
      [...name]
        .map((one) => {
          const chance = random()
          if (one === '-') return chance < 0.4 ? '_' : chance < 0.5 ? '.' : '-'
          return chance < 0.4 ? one.toUpperCase() : one
        })
        .join('')
    for (let round = 0; round < 60; round += 1) {
      h.upstream.reached.length = 0
      const fields = Array.from({ length: 12 }, () => `${mutate(pick(random, [...NAMES, ...MORE]))}: evil-${round}`)
      const listed = random() < 0.3 ? [`Connection: ${mutate(pick(random, NAMES))}`] : []
      expect((await h.send('GET /a', { token, fields: [...fields, ...listed] })).status).toBe(200)
      expect(JSON.stringify(h.upstream.reached[0]?.rawHeaders)).not.toContain('evil')
    }
  })

  test('the same holds over HTTP/2', async () => {
    const random = seeded(6)
    const mutate = (name: string): string =>
      [...name].map((one) => (one === '-' ? pick(random, ['_', '.', '-', '!']) : one)).join('')
    const own: Pair[] = [...pseudo('GET', '/a'), ['authorization', `Bearer ${token}`]]
    for (let round = 0; round < 60; round += 1) {
      h.upstream.reached.length = 0
      const fields = Array.from(
        { length: 12 },
        (): Pair => [mutate(pick(random, [...NAMES, ...MORE])), `evil-${round}`],
      )
      expect((await sendFrames(h.port, headers(1, [...own, ...fields]))).status).toBe(200)
      expect(JSON.stringify(h.upstream.reached[0]?.rawHeaders)).not.toContain('evil')
    }
  })
})
