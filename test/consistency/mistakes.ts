/** Mistakes that the checkers must find: edits of the real source, applied to a copy of it, so that the code has no switches. */
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Engine, Setup } from './simulate.ts'

export type Edit = { readonly file: string; readonly find: string; readonly replace: string }
export type Mistake = {
  readonly name: string
  readonly edits: readonly Edit[]
  readonly setup: Setup
  /** A schedule that shows it. */
  readonly foundAt: number
}

const FRESHNESS = 'engine/store/cache/freshness.ts'
const CACHES = 'engine/store/cache/journal-cache-set.ts'
const CACHE = 'engine/store/cache/journal-cache.ts'
const ROWS = 'engine/store/cache/journal-rows.ts'
const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace })

/** Sets of more than two rows are too wide: what happens to them is otherwise too rare to be seen. */
export const WIDE: readonly Edit[] = [
  edit('engine/store/contract.ts', 'export const SET_ROWS_MAX = 1_000', 'export const SET_ROWS_MAX = 2'),
]
const SMALL = { cacheBytesMax: 8_000, trim: 0.01 }

export const MISTAKES: readonly Mistake[] = [
  {
    name: 'a question joins the statement that is under way',
    setup: {},
    foundAt: 0,
    edits: [
      edit(
        FRESHNESS,
        'const vector = leased ?? (await this.#store.vector([...logs]))',
        'const flying = this.#store.vector([...logs]); Object.assign(this, { flying, sentTick }); const vector = await flying',
      ),
      edit(
        FRESHNESS,
        'this.#vectorBatches.add({\n        question,',
        'const { flying, sentTick } = this as unknown as { flying?: Promise<Vector>; sentTick: number }; const add = (pending: Pending) => flying === undefined ? this.#vectorBatches.add(pending) : void flying.then((vector) => this.#settle([pending], { vector, sentTick }), reject); add({\n        question,',
      ),
    ],
  },
  {
    name: 'rows of a load are installed without what was applied meanwhile',
    setup: { ...SMALL, cacheBytesMax: 10_000, focus: 'groups' },
    foundAt: 8,
    edits: [edit(CACHE, 'for (const { change, atMs } of later) aside.apply(change, atMs)', '')],
  },
  {
    name: 'rows newer than the cache are installed',
    setup: { ...SMALL, cacheBytesMax: 4_500, focus: 'groups', focusShare: 0.35, steps: 500 },
    foundAt: 34,
    edits: [
      edit(
        CACHES,
        "if (target === null || cache.compare(target, this.tick) !== 'behind') finish()",
        'if (true) finish()',
      ),
      edit(CACHE, '||\n      readAt.revision > this.position.revision', ''),
    ],
  },
  {
    name: 'several logs are answered at different moments',
    setup: {},
    foundAt: 73,
    edits: [edit(FRESHNESS, 'if (!passed) return reading', 'if (passed || !passed) return reading')],
  },
  {
    name: 'a load survives the emptying of its cache',
    setup: { trim: 0.2, focus: 'groups', steps: 500 },
    foundAt: 9,
    edits: [edit(CACHE, 'load.generation !== this.generation ||', '')],
  },
  {
    name: 'a trimmed log is taken for an empty delta',
    setup: { trim: 0.04 },
    foundAt: 3,
    edits: [
      edit(CACHE, 'if (!continues(from, target.position, entries)) {', 'if (entries.length > 1e9 || !continues) {'),
    ],
  },
  {
    name: 'two deltas of one log run at once',
    setup: { focus: 'groups' },
    foundAt: 127,
    edits: [
      edit(
        CACHES,
        'if (cache.await({ target, run })) this.#deltas.add(cache)',
        'cache.await({ target, run }); this.#deltas.add(cache)',
      ),
      edit(CACHE, 'if (this.position !== from) return', ''),
      edit(
        CACHE,
        'return known && at === to.revision && writeId === to.writeId',
        'return known || to !== undefined || at + writeId.length > 0',
      ),
    ],
  },
  {
    name: 'a paused evaluation goes on over what has moved on',
    setup: { paused: true },
    foundAt: 2,
    edits: [edit(FRESHNESS, 'if (!this.#standsAt(at, at, scope.logs)) {', 'if (false) {')],
  },
  {
    name: 'a paused evaluation shares its view with others',
    setup: { paused: true },
    foundAt: 46,
    edits: [edit(FRESHNESS, '    this.#view = this.#newView()\n    pending.untilMs', '    pending.untilMs')],
  },
  {
    name: 'closures outlive a change of groups',
    setup: {},
    foundAt: 99,
    edits: [edit(ROWS, "if (key.kind === 'groups') this.above.clear()", '')],
  },
  {
    name: 'a delta goes past its target',
    setup: {},
    foundAt: 18,
    edits: [
      edit(CACHES, 'to: target.position.revision,', 'to: target.position.revision + 9,'),
      edit(
        CACHE,
        'return known && at === to.revision && writeId === to.writeId',
        'return known && at >= to.revision && writeId.length > 0',
      ),
    ],
  },
  {
    name: 'every second question is answered without asking the store',
    setup: {},
    foundAt: 0,
    edits: [
      edit(
        FRESHNESS,
        'this.#settle(all, { vector, sentTick })',
        'Object.assign(this, { last: { vector, sentTick } }); this.#settle(all, { vector, sentTick })',
      ),
      edit(
        FRESHNESS,
        'this.#vectorBatches.add({\n        question,',
        'const { last } = this as unknown as { last?: Reading }; const add = (pending: Pending) => last === undefined || this.#caches.tick % 2 === 0 ? this.#vectorBatches.add(pending) : this.#settle([pending], last); add({\n        question,',
      ),
    ],
  },
  {
    name: 'expiry is judged by another clock than the vector’s',
    setup: {},
    foundAt: 18,
    edits: [edit(FRESHNESS, 'view.begin(at.vector.clockMs)', 'view.begin(at.vector.clockMs - 40)')],
  },
  {
    name: 'a closure is kept beyond the expiry of one of its links',
    setup: { focus: 'groups' },
    foundAt: 59,
    edits: [
      edit(
        'engine/store/cache/rows-view.ts',
        'if (kept !== undefined && this.#live(kept.untilMs)) return kept',
        'if (kept !== undefined) return kept',
      ),
    ],
  },
  {
    name: 'affectedKeys forgets the groups of a subject',
    setup: {},
    foundAt: 6,
    edits: [
      edit(
        'engine/store/affected-keys.ts',
        "if (isGroupMembership(change)) keys.push({ log, kind: 'groups', subject })",
        'isGroupMembership(change)',
      ),
    ],
  },
  {
    name: 'affectedKeys forgets memberships',
    setup: {},
    foundAt: 42,
    edits: [
      edit('engine/store/affected-keys.ts', "return [{ log, kind: 'membership', user: change.user }]", 'return []'),
    ],
  },
  {
    name: 'affectedKeys forgets role grants',
    setup: {},
    foundAt: 16,
    edits: [
      edit(
        'engine/store/affected-keys.ts',
        "return [{ log, kind: 'grants', subject: change.grant.subject }]",
        'return []',
      ),
    ],
  },
  {
    name: 'a cache with a load under way jumps',
    setup: { cacheBytesMax: 4_500, focus: 'groups', focusShare: 0.35, steps: 500 },
    foundAt: 484,
    edits: [edit(CACHE, 'if (newer && this.rows.empty && this.loads.size === 0)', 'if (newer && this.rows.empty)')],
  },
  {
    name: 'the tree is taken as it was when the question was asked',
    setup: { focus: 'tree' },
    foundAt: 18,
    edits: [
      edit(FRESHNESS, 'if (scope.known && scope.logs.some((log) => !logs.includes(log))) {', 'if (scope === null) {'),
    ],
  },
  {
    name: 'a history that was lost in a failover goes unnoticed',
    setup: { failOver: 0.02 },
    foundAt: 65,
    edits: [
      edit(
        CACHE,
        'const same = this.position.revision === position.revision && this.position.writeId === position.writeId',
        'const same = this.position.revision === position.revision',
      ),
      edit(CACHE, 'if (entry.writeId !== from.writeId) return false', ''),
    ],
  },
  {
    name: 'a moment from before the question answers it',
    setup: { failOver: 0.04, steps: 500, focus: 'groups', focusShare: 0.35 },
    foundAt: 73,
    edits: [
      edit(
        FRESHNESS,
        'passedBy !== null && passedBy.sentTick > askedTick &&',
        'passedBy !== null && askedTick >= 0 &&',
      ),
    ],
  },
  {
    name: 'a late, older vector moves a cache back',
    setup: SMALL,
    foundAt: 9,
    edits: [
      edit(CACHE, 'if (sentTick > this.confirmedTick) {', 'if (sentTick > -1) {'),
      edit(CACHE, 'this.rows.clear()\n    this.generation++', ''),
    ],
  },
  {
    name: 'a write to a wide set is forgotten',
    setup: { focus: 'wide' },
    foundAt: 38,
    edits: [
      ...WIDE,
      edit('engine/store/cache/subject-set.ts', 'this.notePresence(subject, null)\n      return', 'return'),
    ],
  },
  {
    name: 'affectedKeys forgets what names a name',
    setup: { focus: 'aside', focusShare: 0.8, steps: 800 },
    foundAt: 55,
    edits: [
      ...WIDE,
      edit(
        'engine/store/affected-keys.ts',
        "{ log, kind: 'named', name: subject, where: { type: typeOf(object), relation } },",
        '',
      ),
      edit('engine/store/affected-keys.ts', "{ log, kind: 'named', name: subject, where: null },", ''),
    ],
  },
]

/** A copy of the source with the edits, each of which must fit exactly once. @returns the folder that holds `pdp`. */
export function plantSource(name: string, edits: readonly Edit[]): string {
  const root = join('.cache', 'planted', name.replaceAll(/[^a-z0-9]+/gi, '-'))
  const edited = editedSource(name, edits)
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  cpSync('pdp', join(root, 'pdp'), { recursive: true })
  symlinkSync(resolve('proto'), join(root, 'proto'))
  for (const [file, text] of edited) writeFileSync(join(root, 'pdp', file), text)
  return root
}

/** The texts of the edited files, by their path in pdp/. Throws where an edit does not find its place, or finds several. */
export function editedSource(name: string, edits: readonly Edit[]): ReadonlyMap<string, string> {
  const edited = new Map<string, string>()
  for (const { file, find, replace } of edits) {
    const parts = (edited.get(file) ?? readFileSync(join('pdp', file), 'utf8')).split(find)
    if (parts.length !== 2)
      throw new Error(
        `"${find}" stands ${parts.length - 1} times in pdp/${file}: the mistake "${name}" has to be planted anew`,
      )
    edited.set(file, parts.join(replace))
  }
  return edited
}

/** The engine of a planted copy. */
export async function plant(name: string, edits: readonly Edit[]): Promise<Engine> {
  const root = plantSource(name, edits)
  const load = (file: string) => import(pathToFileURL(join(root, 'pdp', file)).href)
  const modules = await Promise.all(
    [
      ...[FRESHNESS, 'engine/decide/check.ts', 'engine/decide/models/known-models.ts', 'engine/store/memory/rows.ts'],
      ...[
        'engine/decide/conditions/run.ts',
        'engine/decide/views/contextual-tuples.ts',
        'engine/store/cache/event-loop-turns.ts',
        'engine/decide/slices.ts',
      ],
    ].map(load),
  )
  return Object.assign({}, ...modules)
}
