import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashSecret } from '../../../pdp/identity/secrets.ts'
import { openWorld, postToken, SECRET, type World } from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
  const metadata = { grant_types: ['client_credentials'] }
  await world.putClient({ id: 'chosen', metadata, secretHash: await hashSecret(SECRET) })
})
afterAll(() => world.close())

/** Of two, since a busy machine only ever makes it longer. */
async function leastMs(id: string, as: 'basic' | 'form' = 'basic'): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 2; i += 1) {
    const startedMs = performance.now()
    const form = { grant_type: 'client_credentials' }
    const answer =
      as === 'basic'
        ? await postToken(world, form, { id, secret: 'wrong' })
        : await postToken(world, { ...form, client_id: id, client_secret: 'wrong' })
    times.push(performance.now() - startedMs)
    expect([answer.status, answer.body]).toEqual([
      401,
      { error: 'invalid_client', error_description: 'client authentication failed' },
    ])
  }
  return Math.min(...times)
}

it('a wrong secret takes as long for clients that there are not as for those that there are, of both kinds', async () => {
  const [quick, slow] = [await leastMs('robot'), await leastMs('chosen')]
  const middle = (quick + slow) / 2
  expect(slow).toBeGreaterThan(quick * 2)
  const kindOf = async (id: string, as?: 'form') => ((await leastMs(id, as)) > middle ? 'slow' : 'quick')
  const kinds = new Map<string, string>()
  for (let i = 0; i < 5; i += 1) kinds.set(`unknown-${i}`, await kindOf(`unknown-${i}`))
  expect(new Set(kinds.values())).toEqual(new Set(['slow', 'quick']))
  // The id alone decides, however it is asked, so asking again tells nothing new.
  const [[id, kind] = ['', '']] = [...kinds].filter(([, kind]) => kind === 'slow')
  expect(await kindOf(id, 'form')).toBe(kind)
})
