import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type PermissionBasis, PermissionWatch, type Reevaluation } from '../../../sidecar/enforce/permission-watch.ts'
import type { PdpAnswer, PdpQuestion } from '../../../sidecar/pdp-client/question.ts'

const START_MS = 1_000_000
const UNCONFIRMED_MAX_MS = 2_000
const LEEWAY_MS = 1_000
const ANSWER: PdpAnswer = {
  active: true,
  subjectType: 'user',
  permissions: ['allowed'],
  reasons: [],
  entitlements: new Map(),
  revision: '',
  signIn: { acr: null, authTime: null },
}
const DENIAL: PdpAnswer = { ...ANSWER, permissions: ['denied'] }
const UNDECIDED: PdpAnswer = { ...ANSWER, permissions: ['undecided'] }
const QUESTION: PdpQuestion = {
  token: 't',
  digest: 'd',
  subject: 'alice',
  organization: 'acme',
  permissions: [{ relation: 'viewer', resource: 'doc:1' }],
  entitlements: [],
  context: '',
  requestId: '',
}

let permissionWatch: PermissionWatch
beforeEach(() => {
  vi.useFakeTimers({ now: START_MS })
  permissionWatch = new PermissionWatch({
    clock: Date.now,
    unconfirmedMaxMs: UNCONFIRMED_MAX_MS,
    expiryLeewayMs: LEEWAY_MS,
  })
})
afterEach(() => {
  permissionWatch.close()
  vi.useRealTimers()
})

type Begun = {
  readonly cuts: string[]
  readonly end: () => void
  /** Null until it is asked. */
  tell: ((answer: PdpAnswer | null) => void) | null
  stopped: number
  again: () => Promise<Reevaluation>
  endless: boolean
}
/** `first`: what is said at once when it is asked. `onCancel`: what else happens at that moment. */
function begin(
  options: { readonly livesMs?: number; readonly first?: PdpAnswer; readonly onCancel?: () => void } = {},
): Begun {
  const { livesMs = 60_000, first, onCancel } = options
  const basis: PermissionBasis = {
    question: QUESTION,
    expiresAtMs: Date.now() + livesMs,
    evaluate: ({ permissions: [one] }) => {
      if (one === 'undecided') return 'pdp_unavailable'
      return one === 'allowed' ? null : 'permission_denied'
    },
    watch(onAnswer) {
      begun.tell = onAnswer
      if (first !== undefined) onAnswer(first)
      return () => {
        begun.stopped += 1
      }
    },
  }
  const cuts: string[] = []
  const exchange = {
    basis,
    stale: false,
    reevaluate: () => begun.again(),
    isEndless: () => begun.endless,
    isSignedOut: null,
  }
  const end = permissionWatch.begin(exchange, (code) => {
    cuts.push(code)
    onCancel?.()
  })
  const again = (): Promise<Reevaluation> => Promise.resolve({ kind: 'permitted', basis })
  const begun: Begun = { cuts, end, tell: null, stopped: 0, again, endless: false }
  return begun
}
const pass = (ms: number): unknown => vi.advanceTimersByTime(ms)

describe('an exchange that lasts', () => {
  test('is asked about once it has lasted, goes on while the answer allows it, and no longer', () => {
    const one = begin()
    pass(300)
    expect(one.tell).toBeNull()
    pass(200)
    one.tell?.(ANSWER)
    pass(10 * UNCONFIRMED_MAX_MS)
    expect(one.cuts).toEqual([])
    one.tell?.(DENIAL)
    one.tell?.(DENIAL)
    expect([one.cuts, one.stopped]).toEqual([['permission_denied'], 1])
    pass(60_000)
    expect(one.cuts).toEqual(['permission_denied'])
  })

  test('is asked about at once when nothing ends it but its service', () => {
    const [stream, other] = [begin({ first: ANSWER }), begin({ first: ANSWER })]
    stream.endless = true
    pass(100)
    stream.tell?.(DENIAL)
    expect([stream.cuts, other.tell]).toEqual([['permission_denied'], null])
  })

  test('that has ended is neither asked about nor cut, whatever still comes', () => {
    const [young, old] = [begin(), begin({ livesMs: 5_000 })]
    young.end()
    pass(500)
    old.end()
    old.end()
    for (const answer of [DENIAL, UNDECIDED, null]) old.tell?.(answer)
    pass(60_000)
    expect([young.tell, young.cuts, old.cuts, old.stopped]).toEqual([null, [], [], 1])
  })

  test.each([null, UNDECIDED])('is cut when nothing is known for too long: %#', (answer) => {
    const [silent, unsure, sure] = [begin(), begin({ first: ANSWER }), begin({ first: ANSWER })]
    pass(1_000)
    unsure.tell?.(answer)
    pass(UNCONFIRMED_MAX_MS - 600)
    // It does not begin anew with each answer that says nothing.
    unsure.tell?.(answer)
    expect([silent.cuts, unsure.cuts]).toEqual([['pdp_unavailable'], []])
    pass(600)
    expect([unsure.cuts, sure.cuts]).toEqual([['pdp_unavailable'], []])
  })

  test('is cut by an answer that comes at once, and lets go of its question', () => {
    const one = begin({ first: DENIAL })
    const other = begin({ first: ANSWER })
    pass(500)
    expect([one.cuts, one.stopped, other.cuts, other.stopped]).toEqual([['permission_denied'], 1, [], 0])
  })

  test('is cut when its token expires, later when that was accepted after its expiry', () => {
    const [before, after] = [begin({ livesMs: 100 }), begin({ livesMs: -1 })]
    pass(100)
    expect([before.cuts, after.cuts]).toEqual([['token_expired'], []])
    pass(LEEWAY_MS)
    expect(after.cuts).toEqual(['token_expired'])
  })

  test('is not asked about after close', () => {
    const [one, two] = [begin(), begin({ first: ANSWER })]
    pass(500)
    permissionWatch.close()
    one.tell?.(DENIAL)
    pass(60_000)
    expect([one.cuts, one.stopped, two.cuts, two.stopped]).toEqual([[], 1, [], 1])
  })
})

describe('many exchanges that last', () => {
  test('are each cut at their own time, in whatever order they began', () => {
    const lives = [500, 100, 900, 100, 300, 700, 100, 500]
    const all = lives.map((livesMs) => begin({ livesMs, first: ANSWER }))
    for (let ms = 100; ms <= 1_000; ms += 100) {
      pass(100)
      expect(all.map(({ cuts }) => cuts.length)).toEqual(lives.map((livesMs) => (livesMs <= ms ? 1 : 0)))
    }
  })

  test('lose none that goes on when one that is cut ends others, or begins another', () => {
    for (const victim of [0, 3, 6, 7]) {
      const all: Begun[] = []
      const added: Begun[] = []
      const onCancel = (): void => {
        for (const at of [0, 1, 4, 7]) all[at]?.end()
        added.push(begin({ livesMs: 200 }))
      }
      for (let at = 0; at < 8; at += 1)
        all.push(begin(at === victim ? { livesMs: 100, onCancel: onCancel } : { livesMs: 300 }))
      pass(100)
      const ended = [0, 1, 4, 7]
      expect(all.map(({ cuts }) => cuts.length)).toEqual(all.map((_, at) => (at === victim ? 1 : 0)))
      pass(300)
      expect(all.map(({ cuts }) => cuts)).toEqual(
        all.map((_, at) => (at === victim || !ended.includes(at) ? ['token_expired'] : [])),
      )
      expect(added.map(({ cuts }) => cuts)).toEqual([['token_expired']])
    }
  })

  test('are what a Set would hold, however they come and go', () => {
    const open = new Set<Begun>()
    const gone: Begun[] = []
    let seed = 7
    const next = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * below)
    }
    for (let step = 0; step < 2_000; step += 1) {
      const one = next(3) === 0 ? [...open][next(open.size)] : undefined
      if (one === undefined) open.add(begin({ livesMs: 1_000_000 }))
      else {
        one.end()
        open.delete(one)
        gone.push(one)
      }
    }
    pass(400)
    expect([...open].every(({ tell }) => tell !== null)).toBe(true)
    expect(gone.every(({ tell }) => tell === null)).toBe(true)
    for (const one of open) one.tell?.(DENIAL)
    expect([...open].every(({ cuts, stopped }) => cuts.length === 1 && stopped === 1)).toBe(true)
  })
})

describe('when the rules change, an exchange', () => {
  const soon = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms))

  test('that they still permit goes on, and what was asked about it before is asked anew', async () => {
    const one = begin({ first: ANSWER })
    pass(500)
    permissionWatch.reevaluateAll()
    await soon(100)
    one.tell?.(ANSWER)
    await soon(10 * UNCONFIRMED_MAX_MS)
    expect([one.cuts, one.stopped]).toEqual([[], 1])
  })

  test('that they deny is cut, once it has lasted, and whatever was said of it before', async () => {
    const one = begin({ first: ANSWER })
    one.again = () => Promise.resolve({ kind: 'denied', code: 'route_unknown' })
    permissionWatch.reevaluateAll()
    await soon(300)
    expect(one.cuts).toEqual([])
    await soon(200)
    one.tell?.(ANSWER)
    expect(one.cuts).toEqual(['route_unknown'])
  })

  test('that ended meanwhile is not cut, nor is one that they make public', async () => {
    const [gone, open] = [begin({ first: ANSWER }), begin({ livesMs: 2_000, first: ANSWER })]
    gone.again = () => Promise.resolve({ kind: 'denied', code: 'route_unknown' })
    open.again = () => Promise.resolve({ kind: 'permitted', basis: null })
    pass(500)
    permissionWatch.reevaluateAll()
    gone.end()
    await soon(60_000)
    expect([gone.cuts, open.cuts]).toEqual([[], []])
  })

  test('that nobody can judge is cut like one that no PDP confirms', async () => {
    const one = begin({ first: ANSWER })
    one.again = () => new Promise(() => undefined)
    pass(500)
    permissionWatch.reevaluateAll()
    await soon(UNCONFIRMED_MAX_MS + 200)
    expect(one.cuts).toEqual(['pdp_unavailable'])
  })

  test('is judged by the last of two changes, even when the first judgement comes later', async () => {
    const one = begin({ first: ANSWER })
    const { promise, resolve } = Promise.withResolvers<Reevaluation>()
    one.again = () => promise
    pass(500)
    permissionWatch.reevaluateAll()
    await soon(100)
    one.again = () => Promise.resolve({ kind: 'permitted', basis: null })
    permissionWatch.reevaluateAll()
    await soon(100)
    resolve({ kind: 'denied', code: 'permission_denied' })
    await soon(60_000)
    expect(one.cuts).toEqual([])
  })
})

test('when the process ends, what would never end is sent away first, and all else at the last', () => {
  const [endless, other, later] = [begin({ first: ANSWER }), begin({ first: ANSWER }), begin({ first: ANSWER })]
  endless.endless = true
  permissionWatch.cancelEndless()
  expect([endless.cuts, other.cuts]).toEqual([['draining'], []])
  later.endless = true
  pass(100)
  expect(later.cuts).toEqual(['draining'])
  permissionWatch.cancelAll('draining')
  expect([endless.cuts, other.cuts, later.cuts]).toEqual([['draining'], ['draining'], ['draining']])
})
