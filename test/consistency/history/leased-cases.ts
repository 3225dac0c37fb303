/** Cases of the history checker in which nodes answer from memory, and mistakes of them. */
import type { Edit } from '../mistakes.ts'

const HOLDER = 'engine/store/postgres/connection/sole-holder.ts'
const SOLE = 'engine/store/leases/sole-lease.ts'
const SHARED_HOLDER = 'engine/store/postgres/connection/shared-holder.ts'
const SHARED = 'engine/store/leases/node-lease.ts'
type Setup = {
  readonly leased: 'sole' | 'shared'
  readonly restMs: number
  readonly writers: number
  readonly ownShare?: number
  readonly stopMs?: number
  readonly crashMs?: number
  readonly statement?: string
}
type LeasedCase = { readonly name: string; readonly edits: readonly Edit[]; readonly setup: Setup }

/** With more own writes, one is always under way, and nothing is answered from memory. */
const LEASED: Setup = { leased: 'sole', restMs: 1_500, writers: 2, ownShare: 0.9 }
const SHARED_LEASES: Setup = { leased: 'shared', restMs: 300, writers: 2 }

/** Another lease begins soon after one was ended. */
export const LEASE_HOOKS: readonly Edit[] = [
  {
    file: HOLDER,
    find: 'const PAUSE_MS = 60_000\nconst PAUSE_MS_MAX = 3_600_000',
    replace: 'const PAUSE_MS = 100\nconst PAUSE_MS_MAX = 100',
  },
  { file: SHARED_HOLDER, find: 'const PAUSE_MS = 60_000', replace: 'const PAUSE_MS = 100' },
]

export const LEASE_RIGHT: readonly LeasedCase[] = [
  { name: 'one node answering from memory', edits: [], setup: LEASED },
  {
    name: 'one node answering from memory, stopped for 3 s now and then',
    edits: [],
    setup: { ...LEASED, stopMs: 4_000 },
  },
  {
    name: 'one node answering from memory, PostgreSQL crashing and recovering',
    edits: [],
    setup: { ...LEASED, crashMs: 2_500 },
  },
  { name: 'three nodes answering from memory', edits: [], setup: SHARED_LEASES },
  {
    name: 'three nodes answering from memory, one stopped for 3 s now and then',
    edits: [],
    setup: { ...SHARED_LEASES, stopMs: 4_000 },
  },
  {
    name: 'three nodes answering from memory, PostgreSQL crashing and recovering',
    edits: [],
    setup: { ...SHARED_LEASES, crashMs: 2_500 },
  },
]

export const LEASE_FAULTS: readonly LeasedCase[] = [
  {
    name: 'no write waits for three nodes',
    setup: {
      ...SHARED_LEASES,
      statement:
        'create or replace function await_leases() returns trigger language plpgsql as $$ begin return null; end $$',
    },
    edits: [{ file: SHARED_HOLDER, find: 'const NAMES_MAX = 10', replace: 'const NAMES_MAX = 11' }],
  },
  {
    name: 'one of three nodes answers on while its renewal is under way',
    setup: SHARED_LEASES,
    edits: [
      {
        file: SHARED,
        find: 'const kept = this.#covered\n    this.#covered = new Map()',
        replace: 'const kept = this.#covered',
      },
    ],
  },
  {
    name: 'one of three nodes takes no notice of intents',
    setup: SHARED_LEASES,
    edits: [{ file: SHARED, find: 'counts && !intents.has(bucket)', replace: 'counts' }],
  },
  {
    name: 'a write beside a lease waits for nothing',
    setup: {
      ...LEASED,
      ownShare: 0,
      stopMs: 1_500,
      statement:
        'create or replace function hold_back() returns trigger language plpgsql as $$ begin return null; end $$',
    },
    edits: [{ file: HOLDER, find: 'const NAMES_MAX = 10', replace: 'const NAMES_MAX = 11' }],
  },
  {
    name: 'a lease lasts longer than a write waits',
    setup: { ...LEASED, ownShare: 0 },
    edits: [
      { file: 'engine/store/leases/terms.ts', find: 'TERM_MS = 2_000', replace: 'TERM_MS = 12_000' },
      // Or the next renewal would show that another is writing.
      { file: HOLDER, find: 'const STEP_MS = 500', replace: 'const STEP_MS = 5_000' },
    ],
  },
  {
    name: 'a process keeps what its own writes change',
    setup: LEASED,
    edits: [
      { file: SOLE, find: 'this.#forget()\n    this.#writing++', replace: 'this.#writing++' },
      { file: SOLE, find: 'if (isKnown) this.#forget()\n        else', replace: 'if (!isKnown)' },
    ],
  },
  {
    name: 'an own write says nothing of its lease',
    setup: LEASED,
    edits: [
      {
        file: HOLDER,
        find: 'writing = this.#lease.writing()',
        replace: 'writing = { under: this.#lease.id, ended() {} }',
      },
    ],
  },
]
