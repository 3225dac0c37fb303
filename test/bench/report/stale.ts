/** How stale an answer is seen to be: grants are removed one by one, and asked about until they are refused. */
import { setTimeout as delay } from 'node:timers/promises'

export type Revocable = {
  grant(i: number): Promise<unknown>
  /** Resolves when the removal is acknowledged. */
  revoke(i: number): Promise<unknown>
  allowed(i: number): Promise<boolean>
}
export type Stale = {
  readonly count: number
  /** Those of them that were allowed when asked after the acknowledgement. */
  readonly wrong: number
  /** From the acknowledgement to the last question that was still allowed. */
  readonly longestMs: number
  /** Still allowed when the waiting ended. */
  readonly never: number
}

const AT_A_TIME = 8
const PAUSE_MS_MAX = 400

export async function staleness(
  way: Revocable,
  { count, waitMs }: { readonly count: number; readonly waitMs: number },
): Promise<Stale> {
  const all = Array.from({ length: count }, (_, i) => i)
  await inTurn(all, (i) => way.grant(i))
  // So that whatever remembers an answer remembers this one.
  await inTurn(all, async (i) => {
    await way.allowed(i)
    await way.allowed(i)
  })
  const found: { lastMs: number; never: boolean }[] = []
  const watched: Promise<void>[] = []
  await inTurn(all, async (i) => {
    await way.revoke(i)
    const acknowledgedMs = performance.now()
    const one = { lastMs: -1, never: false }
    found.push(one)
    watched.push(watch(() => way.allowed(i), { one, acknowledgedMs, waitMs }))
  })
  await Promise.all(watched)
  const wrong = found.filter(({ lastMs }) => lastMs >= 0)
  return {
    count,
    wrong: wrong.length,
    longestMs: Math.max(0, ...wrong.map(({ lastMs }) => lastMs)),
    never: found.filter(({ never }) => never).length,
  }
}

async function watch(
  allowed: () => Promise<boolean>,
  { one, acknowledgedMs, waitMs }: { one: { lastMs: number; never: boolean }; acknowledgedMs: number; waitMs: number },
): Promise<void> {
  for (let pauseMs = 5; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 1.5)) {
    const sentMs = performance.now() - acknowledgedMs
    if (!(await allowed())) return
    one.lastMs = sentMs
    if (sentMs > waitMs) {
      one.never = true
      return
    }
    await delay(pauseMs)
  }
}

async function inTurn(all: readonly number[], work: (i: number) => Promise<unknown>): Promise<void> {
  const left = all.values()
  const worker = async (): Promise<void> => {
    for (const i of left) await work(i)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
}

export function staleText({ count, wrong, longestMs, never }: Stale): string {
  if (wrong === 0) return `0 of ${count}`
  const seconds = (longestMs / 1_000).toFixed(longestMs < 1_000 ? 3 : 1)
  if (never === 0) return `${wrong} of ${count}, up to ${seconds} s`
  return `${wrong} of ${count}, ${never === wrong ? '' : `${never} of them `}for good`
}
