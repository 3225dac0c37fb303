/** Set-ups of the leases' schedules, and mistakes that these must show: edits of the real modules, in a copy of them. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Edit, editedSource } from '../mistakes.ts'
import type { Setup } from './world.ts'

const MOVING: Setup = { moving: 0.5, slow: 0.2, deaf: 0.2 }
const AMBUSH: Setup = { ambush: 0.15, cut: 0, pause: 0.1, writes: 90, slow: 0.1, deaf: 1 }
const LAPSING: Setup = { ...AMBUSH, ambush: 0.2, slow: 0.2, pause: 0, crash: 0 }
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
const wait = (find: string, replace: string): Edit => ({ file: `${FOLDER}/announced-write.ts`, find, replace })
const mistake = (name: string, foundAt: number, setup: Setup, ...edits: readonly Edit[]): Mistake => ({
  ...{ name, foundAt, setup, edits },
})

const CARRIED = 'if (this.#clock() >= this.#untilMs || timeline !== this.#timeline)'
const AWAITED = 'isAnnouncing ? [] : [intent]'
const DROPPED = 'sinceMs: this.#clock() })\n    this.#covered.delete(log)'
const TERM_OVER = 'const nowMs = this.#clock()\n    if (nowMs >= this.#untilMs)'

export const LEASE_MISTAKES: readonly Mistake[] = [
  mistake(
    'a write can be seen before the leases are over',
    1,
    {},
    wait('leftMs > rereadEveryMs', 'leftMs > 1e9'),
    wait('afterMs: leftMs', 'afterMs: 0 * leftMs'),
  ),
  mistake(
    'the holders are read before the intent is there',
    141,
    MOVING,
    wait("['intent', 'holders'] as const", "['holders', 'intent'] as const"),
  ),
  mistake(
    'an interest counts from the renewal that registers it',
    3,
    MOVING,
    node('if (interests.has(log) && renewal', 'if (interests.size >= 0 && renewal'),
  ),
  mistake(
    'a crash gives back an intent that was cleared away',
    302_526,
    { ...MOVING, restart: 1, cut: 0.5, writes: 15 },
    node('return { intents, isDurable: true }', 'return { intents, isDurable: false }'),
  ),
  mistake(
    'a late renewal takes back what was given up',
    6,
    {},
    node('for (const intent of renewal.awaited)', 'for (const intent of this.#heard.keys())'),
  ),
  mistake(
    'a renewal forgets what is only being announced',
    19,
    {},
    node(AWAITED, 'isAnnouncing ? [intent] : [intent]'),
  ),
  mistake(
    'a process that knows of an intent keeps its lease',
    1,
    {},
    node(DROPPED, 'sinceMs: this.#clock() })'),
    node('for (const { log } of this.#heard.values()) this.#covered.delete(log)', ''),
  ),
  mistake(
    'the term counts from the reply',
    66,
    AMBUSH,
    node('renewal.sentMs + this.#termMs', 'this.#clock() + this.#termMs'),
  ),
  mistake(
    'the clock is read once for each renewal',
    1,
    { cut: 0.8, deaf: 0.3, pause: 1 },
    node(TERM_OVER, TERM_OVER.replace('this.#clock()', 'this.#read.gotMs')),
  ),
  mistake(
    'the rates of clocks are not reckoned with',
    599,
    AMBUSH,
    wait('atMost(termMs)', 'Math.min(termMs, atMost(termMs))'),
  ),
  mistake(
    'a write does not need its intent any more',
    6,
    { restart: 0.5 },
    wait('intent?.timeline === timeline', '(intent?.timeline ?? timeline) === timeline'),
  ),
  mistake(
    'a silent process is struck off at once',
    2,
    {},
    wait('const atMs = readMs + outwaitMs', 'const atMs = readMs + 0 * outwaitMs'),
    wait('leftMs > rereadEveryMs', 'leftMs > outwaitMs - 5'),
  ),
  mistake(
    'a late renewal overwrites a newer one',
    114,
    { moving: 0.6, lost: 0.3, deaf: 1, writes: 40, cut: 0.6, crash: 0 },
    node('row.stamp < renewal.stamp', 'row.stamp !== renewal.stamp'),
  ),
  mistake(
    'an interest is not on disk',
    45,
    DISK,
    node('some((log) => !this.#durable.has(log))', 'some((log) => !this.#durable.has(log) && log === null)'),
  ),
  mistake(
    'a process is struck off across a restart',
    50,
    STAMP,
    wait('&& serverLife === removal.serverLife', '&& serverLife >= removal.serverLife'),
  ),
  mistake(
    'a stamp counts from the announcement',
    245,
    { failover: 0.5, losesWrites: true },
    wait('const atMs = readMs + outwaitMs', 'const atMs = (sinceMs ?? readMs) + outwaitMs'),
  ),
  mistake(
    'a failover is not outwaited',
    3,
    { failover: 0.7, losesWrites: true, writes: 10 },
    wait('timeline === settled ? next()', 'timeline >= settled ? next()'),
  ),
  mistake(
    'a write outlives the primary that it was announced to',
    42,
    { failover: 0.5, losesWrites: true },
    wait('intent?.timeline === timeline', 'intent !== undefined && intent.timeline <= timeline'),
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
    1689,
    { cut: 0.8 },
    node(CARRIED, 'if (timeline !== this.#timeline)'),
    node('isOver || !this.#covered.has(log)', '(isOver && false) || !this.#covered.has(log)'),
  ),
  mistake(
    'what was covered is carried over a failover',
    25,
    { failover: 0.7, losesWrites: true },
    node(CARRIED, 'if (this.#clock() >= this.#untilMs || timeline < 0)'),
  ),
  mistake(
    'a lapse is looked for when a renewal is sent, and not when its answer comes',
    7913,
    LAPSING,
    node(CARRIED, 'if (timeline !== this.#timeline)'),
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
