/** Characters that browsers send in paths as they are. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { judge } from '../support/judge.ts'

const ROUTES = 'GET /files/**: public\nGET /docs/{id}: viewer doc:{id}\nGET /lit/a[1]: scope a\nGET /lit/{x}: scope b'

describe('a path with characters that browsers leave as they are', () => {
  let h: Harness
  beforeAll(async () => {
    h = await startHarness({ routes: ROUTES, script: tuples(['alice viewer doc:a[1]']) })
  })
  afterAll(() => h.close())

  test.each(['a[1].png', 'a]b', 'a|b', 'a^b', '[id].js', '[[...all]]', '%5B1%5D'])(
    'reaches the service unchanged: %s',
    async (name) => {
      h.upstream.reached.length = 0
      expect((await h.send(`GET /files/${name}`)).status).toBe(200)
      expect(h.upstream.reached[0]?.target).toBe(`/files/${name}`)
    },
  )

  test('is a value as any other', async () => {
    const token = await h.issuer.token()
    expect((await h.send('GET /docs/a[1]', { token })).status).toBe(200)
    expect((await h.send('GET /docs/a[2]', { token })).status).toBe(403)
  })

  test.each([
    'a"b',
    'a<b',
    'a>b',
    'a`b',
    'a{b',
    'a}b',
    'a\\b',
    'a\u00e9b',
    'a#b',
    'a%5Cb',
    'a%7Eb',
    'a%2520b',
    'a%00b',
  ])('is 400 with another one: %s', async (name) => {
    expect((await h.send(`GET /files/${name}`)).status).toBe(400)
  })

  test('is the literal of a route only as it is written', () => {
    expect(judge(ROUTES, 'GET /lit/a[1]')).toBe('GET /lit/a[1]')
    expect(judge(ROUTES, 'GET /lit/a%5B1%5D')).toBe('refused')
  })
})
