import { credentials } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { createPdpClient, type PdpClient } from '../../../sidecar/pdp-client/client.ts'
import type { PdpUnavailable } from '../../../sidecar/request/errors.ts'
import { field } from '../../support/peers/raw-http.ts'
import { QUESTION, type Script, type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { startHarness } from '../support/harness.ts'

const ALLOW = tuples(['alice viewer invoice:1'])
const TIMEOUT_MS = 3_000

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** `nowMs`: the clock that tells for how long an address is left alone. */
async function start(scripts: readonly Script[], options: { timeoutMs?: number; nowMs?: () => number } = {}) {
  const pdps = await Promise.all(scripts.map((script) => startScriptedPdp(script)))
  let opened = 0
  const client = createPdpClient({
    addresses: pdps.map(({ address }) => address),
    credentials: credentials.createInsecure(),
    random: () => 0.5,
    clock: options.nowMs ?? Date.now,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    onConnectionChange({ open }) {
      if (open) opened += 1
    },
  })
  closers.push(...pdps.map((pdp) => () => pdp.stop()), () => client.close())
  await until(() => opened === pdps.length)
  return { pdps, client }
}
const asks = async (client: PdpClient, count: number): Promise<string[]> => {
  const outcomes: string[] = []
  for (let at = 0; at < count; at += 1)
    outcomes.push(
      await client.ask(QUESTION).then(
        ({ permissions }) => permissions[0] ?? '',
        (err: PdpUnavailable) => err.code,
      ),
    )
  return outcomes
}
const asked = (pdps: readonly ScriptedPdp[]): number[] => pdps.map((pdp) => pdp.asked.length)

describe('a PDP that has lost its database', () => {
  test.each(['store_unavailable', 'draining'])(
    'and answers %s is asked once, and the others from then on',
    async (code) => {
      let nowMs = 1_000_000
      const { pdps, client } = await start([() => code, ALLOW, ALLOW], { nowMs: () => nowMs })
      expect(await asks(client, 12)).toEqual(Array(12).fill('allowed'))
      expect(asked(pdps)[0]).toBe(1)
      nowMs += 2_000
      expect(await asks(client, 12)).toEqual(Array(12).fill('allowed'))
      expect(asked(pdps)[0]).toBe(2)
      const [first] = pdps
      if (first !== undefined) first.script = ALLOW
      nowMs += 2_000
      expect(await asks(client, 12)).toEqual(Array(12).fill('allowed'))
      expect(asked(pdps)[0]).toBe(6)
    },
  )

  test('like all others, is asked twice at most for each question, and nothing is allowed', async () => {
    const { pdps, client } = await start([() => 'store_unavailable', () => 'store_unavailable'])
    expect(await asks(client, 3)).toEqual(Array(3).fill('pdp_unavailable'))
    expect(asked(pdps)).toEqual([3, 3])
  })

  test('and is the only one is asked once for each question', async () => {
    const { pdps, client } = await start([() => 'store_unavailable'])
    expect(await asks(client, 3)).toEqual(Array(3).fill('pdp_unavailable'))
    expect(asked(pdps)).toEqual([3])
  })

  test('does not keep what lasts: its watched questions move to another address', async () => {
    const { pdps, client } = await start([() => 'store_unavailable', ALLOW])
    const said: string[] = []
    for (let at = 0; at < 4; at += 1)
      closers.push(client.watch(QUESTION, (answer) => void said.push(answer?.permissions[0] ?? 'nothing')))
    await until(() => said.filter((text) => text === 'allowed').length === 4)
    await until(() => pdps[0]?.watched() === 0 && pdps[1]?.watched() === 4)
  })
})

describe('a PDP that has too much to do', () => {
  test('is not asked again, neither there nor elsewhere, and counts as well', async () => {
    const { pdps, client } = await start([() => 'overloaded', () => 'overloaded'])
    expect(await asks(client, 20)).toEqual(Array(20).fill('overloaded'))
    expect(asked(pdps)).toEqual([10, 10])
  })

  test('is told to the client as 503 with Retry-After, and nothing is forwarded', async () => {
    const harness = await startHarness({
      routes: 'GET /invoices/{id}: viewer invoice:{id}',
      script: () => 'overloaded',
    })
    closers.push(() => harness.close())
    const answer = await harness.send('GET /invoices/1')
    expect([answer.status, field(answer, 'retry-after'), JSON.parse(answer.body).code]).toEqual([
      503,
      '1',
      'overloaded',
    ])
    expect(harness.upstream.reached).toEqual([])
  })
})

describe('a deadline that passes', () => {
  const block = (ms: number): void => {
    for (const startedMs = performance.now(); performance.now() - startedMs < ms; );
  }

  test('while this process is busy itself is not counted against the PDP', async () => {
    const { pdps, client } = await start([() => null], { timeoutMs: 200 })
    for (let at = 0; at < 8; at += 1) {
      const answer = client.ask(QUESTION)
      // Another's work keeps answers from being read.
      setImmediate(() => block(150))
      await expect(answer).rejects.toMatchObject({
        code: 'overloaded',
        message: expect.stringMatching(/^this sidecar (?:was|is) too busy/),
      })
    }
    expect(client.silentSinceMs()).toBeNull()
    const [pdp] = pdps
    if (pdp !== undefined) pdp.script = ALLOW
    await until(async () => (await asks(client, 1))[0] === 'allowed')
  })

  test('that is sure to pass, because this process gets no time, is told at once, and nobody is asked', async () => {
    const { pdps, client } = await start([ALLOW], { timeoutMs: 200 })
    const turn = () => new Promise((resolve) => setTimeout(resolve, 0))
    for (let at = 0; at < 4; at += 1) {
      block(300)
      await turn()
    }
    const before = pdps[0]?.asked.length
    await expect(client.ask(QUESTION)).rejects.toMatchObject({
      code: 'overloaded',
      message: 'this sidecar is too busy to ask',
    })
    expect(pdps[0]?.asked.length).toBe(before)
    expect(client.silentSinceMs()).toBeNull()
    // Once it has time again, it asks.
    await until(async () => (await asks(client, 1))[0] === 'allowed')
  })

  test('is not sure to pass after one long pause', async () => {
    const { client } = await start([ALLOW], { timeoutMs: 1_000 })
    block(1_100)
    await new Promise((resolve) => setTimeout(resolve, 0))
    expect(await asks(client, 1)).toEqual(['allowed'])
  })

  test('counts when the PDP says nothing, and after five in a row nobody waits for it', async () => {
    const { client } = await start([() => null], { timeoutMs: 200 })
    await until(async () => {
      await asks(client, 1)
      return client.silentSinceMs() !== null
    })
  })
})
