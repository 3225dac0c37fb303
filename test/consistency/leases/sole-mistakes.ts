/** Set-ups of the schedules of a sole lease, and mistakes that these must show. */
import type { Edit } from '../mistakes.ts'
import { type Mistake, vector } from './mistakes.ts'
import type { Setup } from './world.ts'

const CUT: Setup = { cut: 0.8, foreign: 150 }
const SLOW: Setup = { lost: 0.1, slow: 0.2, foreign: 200 }
const BUSY: Setup = { writes: 6, foreign: 150, slow: 0.1 }

export const SOLE_SETUPS: readonly (readonly [name: string, setup: Setup])[] = [
  ['a sole lease, pauses and crashes', {}],
  ['a sole lease, its holder cut off from the database', CUT],
  ['a sole lease, many writes', BUSY],
  ['a sole lease, statements lost and late', SLOW],
  ['a sole lease, restarts of the database', { restart: 0.5 }],
  ['a sole lease, failovers that lose nothing', { failover: 0.5, foreign: 200 }],
  ['a sole lease, failovers that lose writes', { failover: 0.5, losesWrites: true }],
]

const edit = (find: string, replace: string): Edit => ({ file: 'engine/store/leases/sole-lease.ts', find, replace })
const mistake = (name: string, foundAt: number, setup: Setup, ...edits: readonly Edit[]): Mistake => ({
  ...{ name, foundAt, setup, edits },
})

export const SOLE_MISTAKES: readonly Mistake[] = [
  mistake('another’s raise does not wait', 3, {}, edit('id !== under,', 'id === under && id === null,')),
  mistake('a lease is renewed while a raise waits', 8, {}, edit('raisingAgainstIt === 0', 'raisingAgainstIt >= 0')),
  mistake('a lease begins while a raise is under way', 8, BUSY, edit('raising === 0', 'raising >= 0')),
  mistake(
    'a raise waits by a clock whose rate is not reckoned with',
    311,
    CUT,
    edit('atMost(termMs),', 'Math.min(termMs, atMost(termMs)),'),
  ),
  mistake(
    'the term of a sole lease counts from the reply',
    28,
    { ...CUT, slow: 0.3 },
    edit('this.#untilMs = sentMs + this.#termMs', 'this.#untilMs = this.#clock() + this.#termMs'),
  ),
  mistake(
    'the clock of a sole lease is read once for each renewal',
    1,
    { pause: 1, foreign: 150 },
    edit('const nowMs = this.#clock()', 'const nowMs = this.#clockRead.gotMs'),
  ),
  mistake(
    'a process keeps what it covered while it writes',
    1,
    {},
    edit('this.#forget()\n    this.#writing++', 'this.#writing++'),
  ),
  mistake(
    'what was read during an own write is kept',
    1,
    BUSY,
    edit('|| this.#writing > 0 ?', '?'),
    edit('if (isKnown) this.#forget()\n        else', 'if (!isKnown)'),
  ),
  mistake('a write without an answer counts as over', 53, SLOW, edit('else this.giveUp()', 'else this.#forget()')),
  mistake(
    'any lease of its process exempts a late write',
    7,
    SLOW,
    edit('id !== under,', 'id !== under && under === null,'),
  ),
  mistake(
    'what was read before a failover is kept',
    121,
    { failover: 0.5, losesWrites: true, writes: 130, crash: 0, foreign: 5_000, pause: 0 },
    edit('answer.timeline !== this.#timeline ||', 'answer.timeline < 0 ||'),
  ),
  mistake(
    'what was read before something ended is kept',
    1,
    SLOW,
    edit('if (reading?.epoch !== this.#epoch) return', 'if (reading === null) return'),
  ),
  mistake(
    'expiry is judged by the clock of a sole lease',
    1,
    {},
    vector('atLeast(nowMs - gotMs)', 'atLeast(0)'),
    vector('atMost(nowMs - sentMs)', 'atMost(0)'),
  ),
]
