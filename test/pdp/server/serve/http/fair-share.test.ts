/** One caller that asks far more than its share is told to wait, and everybody else is answered. The admission is the real one. */
import { Agent, request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeEntitlements } from '../../../../../pdp/engine/store/entitlements/store-source.ts'
import { createAdmission } from '../../../../../pdp/server/serve/authentication/admission.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

const slowly = () => new Promise((resolve) => setTimeout(resolve, 10))
let served: Served
beforeAll(async () => {
  // Time does not pass, so that a slow machine refuses nobody for having waited long: only the number of questions counts.
  const admission = createAdmission({ clock: () => 0, openMax: 2, waitingMax: 10, deadlineMs: 60_000 })
  served = await serve({
    admission,
    entitlements(store) {
      const source = storeEntitlements(store)
      return { ...source, read: (...asked) => slowly().then(() => source.read(...asked)) }
    },
  })
  await seedAcme(served)
})
afterAll(() => served.close())

const BODY = JSON.stringify({ entitlements: ['feature.invoicing'] })
type Told = { readonly status: number; readonly retryAfter: string | undefined; readonly code: unknown }

const agent = new Agent({ keepAlive: true, maxSockets: 100 })
/** Asks over POST /oauth/decisions. */
const ask = (token: string): Promise<Told> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const call = request(`${served.url}/oauth/decisions`, { method: 'POST', headers, agent }, async (res) => {
      let text = ''
      for await (const chunk of res) text += chunk
      resolve({ status: res.statusCode ?? 0, retryAfter: res.headers['retry-after'], code: JSON.parse(text).code })
    })
    call.on('error', reject)
    call.end(BODY)
  })

test('a greedy client gets 429 with Retry-After, and neither its organization nor others wait for it', async () => {
  const greedy = served.token({ clientId: 'greedy' })
  const others = [served.token({ clientId: 'calm' }), served.token({ clientId: 'web', organization: 'another' })]
  let goesOn = true
  const told: Told[] = []
  // Fifteen times as many as are answered at once.
  const flood = Array.from({ length: 30 }, async () => {
    while (goesOn) {
      told.push(await ask(greedy))
      await slowly()
    }
  })
  await expect.poll(() => told.filter(({ status }) => status === 429).length, { timeout: 20_000 }).toBeGreaterThan(0)
  const calm: Told[] = []
  for (let at = 0; at < 10; at += 1) calm.push(...(await Promise.all(others.map(ask))))
  goesOn = false
  await Promise.all(flood)
  agent.destroy()
  expect(calm.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const refused = told.filter(({ status }) => status === 429)
  expect(new Set(refused.map(({ retryAfter, code }) => `${retryAfter} ${code}`))).toEqual(new Set(['1 overloaded']))
  // It is served, too, within its share.
  expect(told.some(({ status }) => status === 200)).toBe(true)
})
