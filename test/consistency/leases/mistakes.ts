/** Set-ups of the leases' schedules, and mistakes that these must show: edits of the real modules, in a copy of them. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Edit, editedSource } from '../mistakes.ts'
import { DRIFT, type Setup } from './world.ts'

const MOVING: Setup = { moving: 0.5, slow: 0.2, deaf: 0.2 }
const AMBUSH: Setup = { ambush: 0.15, cut: 0, pause: 0.1, writes: 90, slow: 0.1, deaf: 1 }
const STAMP: Setup = { ambushStamp: 0.1, deaf: 0.7, writes: 8, crash: 0, pause: 0, cut: 0 }
const DISK: Setup = { ...MOVING, ambushDisk: 0.7, writes: 60 }

export const SETUPS: readonly (readonly [name: string, setup: Setup])[] = [
  ['pauses, crashes, losses', { writes: 60 }],
  ['many writes', { writes: 8 }],
  ['processes cut off from the database', { cut: 0.8, writes: 40 }],
  ['announcements unheard, interests moving, everything slow', MOVING],
  ['an adversary who strikes when a term begins', AMBUSH],
  ['an adversary who strikes when an interest is registered', DISK],
  ['an adversary who restarts the database when a renewal took effect', STAMP],
  ['restarts of the database', { restart: 0.5 }],
  ['restarts of the database, interests moving', { ...MOVING, restart: 1, cut: 0.5, writes: 15 }],
  ['failovers that lose nothing', { failover: 0.5, restart: 0.2 }],
  ['failovers that lose writes', { failover: 0.5, losesWrites: true }],
  ['statements lost and late', { lost: 0.08, moving: 0.3 }],
]

export type Mistake = {
  readonly name: string
  readonly edits: readonly Edit[]
  readonly setup: Setup
  /** A schedule that shows it. */
  readonly foundAt: number
}

const FOLDER = 'engine/store/leases'
const node = (find: string, replace: string): Edit => ({ file: `${FOLDER}/node-lease.ts`, find, replace })
/** Both kinds of leases answer by it. */
export const vector = (find: string, replace: string): Edit => ({ file: `${FOLDER}/leased-vector.ts`, find, replace })
const mistake = (name: string, foundAt: number, setup: Setup, ...edits: readonly Edit[]): Mistake => ({
  ...{ name, foundAt, setup, edits },
})

const RENEWAL = "['row', 'turn', 'intents', 'positions', 'update']"
const LAPSED = 'nowMs >= this.#untilMs || timeline !== this.#timeline'
const SENT = 'const kept = this.#covered\n    this.#covered = new Map()'
const TERM_OVER = 'const nowMs = this.#clock()\n    if (nowMs >= this.#untilMs) return'
const LATE: Setup = { moving: 0.6, lost: 0.3, deaf: 1, writes: 40, cut: 0.6, crash: 0 }
const LOSING: Setup = { failover: 0.5, losesWrites: true }

export const LEASE_MISTAKES: readonly Mistake[] = [
  mistake('a write can be seen before the leases are over', 1, {}, node('atMost(termMs)', '0 * atMost(termMs)')),
  mistake(
    'a writer takes its turn before its intent is there',
    1,
    { writes: 8 },
    node("['intent', 'turn']", "['turn', 'intent']"),
  ),
  mistake(
    'a renewal takes its turn after it has read the intents',
    3,
    { writes: 8 },
    node(RENEWAL, "['row', 'intents', 'turn', 'positions', 'update']"),
  ),
  mistake(
    'a renewal reads the intents after the positions',
    1,
    { writes: 8 },
    node(RENEWAL, "['row', 'turn', 'positions', 'intents', 'update']"),
  ),
  mistake(
    'a renewal reads the intents before its row',
    9,
    MOVING,
    node(RENEWAL, "['turn', 'intents', 'row', 'positions', 'update']"),
  ),
  mistake(
    'an interest counts from the renewal that registers it',
    1,
    MOVING,
    node('&& interests.has(bucket) &&', '&& interests.size >= 0 &&'),
  ),
  mistake('a process answers on while its renewal is under way', 1, {}, node(SENT, 'const kept = this.#covered')),
  mistake(
    'a process that sees an intent keeps what it covered',
    1,
    {},
    node('counts && !intents.has(bucket)', 'counts && (!intents.has(bucket) || renewal.kept.has(log))'),
  ),
  mistake(
    'what was covered is kept over a renewal without an answer',
    28,
    { lost: 0.08 },
    node(
      SENT,
      'const kept = new Map([...this.#lost, ...this.#covered])\n    this.#lost = kept\n    this.#covered = new Map()',
    ),
    node(
      'readonly #asked = new Set<JournalId>()',
      'readonly #asked = new Set<JournalId>()\n  #lost = new Map<JournalId, JournalPosition>()',
    ),
    node('this.#durable = renewal.interests', 'this.#durable = renewal.interests\n    this.#lost = new Map()'),
  ),
  mistake(
    'the term counts from the reply',
    7,
    AMBUSH,
    node('this.#untilMs = renewal.sentMs + this.#termMs', 'this.#untilMs = this.#clock() + this.#termMs'),
  ),
  mistake(
    'the clock is read once for each renewal',
    1,
    { cut: 0.8, deaf: 0.3, pause: 1 },
    node(TERM_OVER, TERM_OVER.replace('this.#clock()', 'this.#read.gotMs')),
  ),
  mistake(
    'the rates of clocks are not reckoned with',
    998,
    { ...AMBUSH, ambush: 0.3, slow: 0, lost: 0, pause: 0, writes: 200, rate: 1 + DRIFT },
    node('atMost(termMs)', 'Math.min(termMs, atMost(termMs))'),
  ),
  mistake(
    'a process that is struck off renews meanwhile',
    492,
    { ...AMBUSH, writes: 40 },
    node('=> !isLocked', '=> !isLocked || isLocked'),
  ),
  mistake(
    'a late renewal overwrites a newer one',
    29,
    LATE,
    node('row.stamp < renewal.stamp', 'row.stamp !== renewal.stamp'),
  ),
  mistake(
    'an interest is not on disk',
    521,
    DISK,
    node('!this.#durable.has(bucket)', '!this.#durable.has(bucket) && bucket < 0'),
  ),
  mistake(
    'a failover is not outwaited',
    29,
    { failover: 0.7, losesWrites: true, writes: 10 },
    node('settled === timeline', 'settled <= timeline'),
  ),
  mistake(
    'the parent is no part of the lease',
    1,
    {},
    vector(
      'for (const log of logs) {\n    const position',
      'for (const log of logs.slice(0, 3)) {\n    const position',
    ),
  ),
  mistake(
    'expiry is judged by the clock of the lease',
    1,
    {},
    vector('atLeast(nowMs - gotMs)', 'atLeast(0)'),
    vector('atMost(nowMs - sentMs)', 'atMost(0)'),
  ),
  mistake(
    'what was covered is carried over a lapse',
    431,
    { cut: 0.8 },
    node(LAPSED, 'timeline !== this.#timeline'),
    node('sentMs >= this.#untilMs || !kept', '!kept'),
  ),
  mistake(
    'what was covered is carried over a failover',
    156,
    { ...LOSING, writes: 10 },
    node(LAPSED, 'nowMs >= this.#untilMs'),
  ),
]

/** A module of a copy of the real ones, with the edits. */
export async function loadPlanted({ name, edits }: Mistake, module: string): Promise<object> {
  const root = join('.cache', 'planted', `leases-${name.replaceAll(/[^a-z0-9]+/gi, '-')}`)
  const edited = editedSource(name, edits)
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  cpSync(join('pdp', FOLDER), join(root, FOLDER), { recursive: true })
  for (const [file, text] of edited) writeFileSync(join(root, file), text)
  return import(pathToFileURL(join(root, FOLDER, module)).href)
}
