import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { admit } from '../../../sidecar/enforce/admission.ts'
import { Places } from '../../../sidecar/enforce/places.ts'
import { Turns } from '../../../sidecar/enforce/turns.ts'
import { DEFAULT_LIMITS } from '../../../sidecar/route-file/default-limits.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { startHarness } from '../support/harness.ts'

const LIMITS = { decisionsMax: 2, waitingMax: 4, waitingMs: 1_000 }

describe('turns at the PDP', () => {
  let turns: Turns
  let order: string[]
  beforeEach(() => {
    vi.useFakeTimers()
    turns = new Turns()
    order = []
  })
  afterEach(() => void vi.useRealTimers())

  /** Writes down `name` when its turn comes, and `name denied` when it does not. */
  const come = (client: string, name: string, limits = LIMITS) => {
    const waiting = turns.begin(client, limits)
    if (waiting === null) order.push(name)
    waiting?.turn.then(
      () => order.push(name),
      () => order.push(`${name} denied`),
    )
    return waiting
  }
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

  test('come at once while few questions are open, and then in the order of arrival', async () => {
    for (const name of ['1', '2', '3', '4']) come('a', name)
    expect(order).toEqual(['1', '2'])
    turns.end()
    await settle()
    expect(order).toEqual(['1', '2', '3'])
    turns.end()
    await settle()
    expect([order, turns.waitingCount]).toEqual([['1', '2', '3', '4'], 0])
  })

  test('are given to one client after the other, however many one of them has waiting', async () => {
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) come('a', name)
    come('b', 'b1')
    for (let count = 0; count < 4; count += 1) turns.end()
    await settle()
    expect(order).toEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'a5'])
  })

  test('that do not come in time are denied, and given to nobody twice', async () => {
    for (const name of ['1', '2', '3']) come('a', name)
    await vi.advanceTimersByTimeAsync(LIMITS.waitingMs - 1)
    expect(order).toEqual(['1', '2'])
    await vi.advanceTimersByTimeAsync(1)
    expect(order).toEqual(['1', '2', '3 denied'])
    turns.end()
    turns.end()
    expect([come('a', '4'), come('a', '5')]).toEqual([null, null])
    expect(come('a', '6')).not.toBeNull()
  })

  test('when too many wait, the oldest of the client with the most is denied: others keep theirs', async () => {
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2']) come(name.slice(0, 1), name)
    await settle()
    // a3, a4, a5 and b1 waited; b2 was one too many.
    expect(order).toEqual(['a1', 'a2', 'a3 denied'])
    come('a', 'a6')
    come('a', 'a7')
    await settle()
    expect(order.slice(3)).toEqual(['a4 denied', 'a5 denied'])
    for (let count = 0; count < 4; count += 1) turns.end()
    await settle()
    expect(order.slice(5)).toEqual(['a6', 'b1', 'a7', 'b2'])
  })

  test('are denied at once where nobody may wait', () => {
    const limits = { ...LIMITS, waitingMax: 0 }
    come('a', '1', limits)
    come('a', '2', limits)
    expect(() => turns.begin('a', limits)).toThrow('Too many requests wait for their decision')
    expect(turns.waitingCount).toBe(0)
  })

  test('are not given to a client that has left', async () => {
    for (const name of ['1', '2']) come('a', name)
    come('a', '3')?.leave()
    come('a', '4')
    turns.end()
    await settle()
    expect([order, turns.waitingCount]).toEqual([['1', '2', '3 denied', '4'], 0])
  })

  test('one that leaves after its turn has come changes nothing', async () => {
    for (const name of ['1', '2']) come('a', name)
    const third = come('a', '3')
    turns.end()
    await settle()
    third?.leave()
    await settle()
    expect(order).toEqual(['1', '2', '3'])
    expect(come('a', '4')).not.toBeNull()
  })

  test('come when a reload has raised the limit', async () => {
    for (const name of ['1', '2', '3']) come('a', name)
    come('a', '4', { ...LIMITS, decisionsMax: 4 })
    await settle()
    expect(order).toEqual(['1', '2', '3', '4'])
  })
})

describe('the waits of one request', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('are together no longer than waiting_ms', async () => {
    const limits = { ...DEFAULT_LIMITS, clientRequestsMax: 1, decisionsMax: 1, waitingMs: 1_000 }
    const shared = { places: new Places(), turns: new Turns() }
    const come = (address: string) =>
      admit(shared, { address, upgrade: false, limits, requestsMax: 10, serviceRequestsMax: null })
    const [first, second, other] = [come('192.0.2.1'), come('192.0.2.1'), come('192.0.2.2')]
    first.arrive()
    other.arrive()
    // It never gets its answer.
    expect(other.turn()).toBe(null)
    const arriving = second.arrive()
    await vi.advanceTimersByTimeAsync(700)
    first.leave()
    await arriving
    const outcome = second.turn()?.catch((err: unknown) => String(err))
    await vi.advanceTimersByTimeAsync(299)
    expect(await Promise.race([outcome, 'waits'])).toBe('waits')
    await vi.advanceTimersByTimeAsync(2)
    expect(await Promise.race([outcome, 'waits'])).toContain('Too many requests wait for their decision')
  })
})

describe('a sidecar with as many open questions as may be', () => {
  test('denies the next one with 503 and Retry-After, asks nothing for it, and serves public routes', async () => {
    const h = await startHarness({
      routes: 'GET /docs/{id}: viewer doc:{id}\nGET /public: public',
      extra: 'limits: {decisions_max: 1, waiting_max: 1, waiting_ms: 200}',
      limits: { pdpTimeoutMs: 20_000 },
      script: tuples(['alice viewer doc:1']),
    })
    try {
      const { script } = h.pdp
      h.pdp.script = () => null
      const token = await h.issuer.token()
      const first = h.send('GET /docs/1', { token })
      await until(() => h.pdp.asked.length === 1)
      const second = await h.send('GET /docs/2', { token })
      expect([second.status, field(second, 'retry-after'), JSON.parse(second.body).code]).toEqual([503, '1', 'busy'])
      expect((await h.send('GET /public', { token: null })).status).toBe(200)
      expect(h.pdp.asked.length).toBe(1)
      h.pdp.script = script
      h.pdp.cut()
      expect((await first).status).toBe(200)
      expect((await h.send('GET /docs/1', { token })).status).toBe(200)
    } finally {
      await h.close()
    }
  })
})
