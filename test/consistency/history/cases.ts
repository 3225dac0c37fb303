/** What the history checker runs: set-ups in which nothing may be wrong, and mistakes of which each must be caught. */
import { CONDITION_MISTAKES } from '../conditions/mistakes.ts'
import { type Edit, MISTAKES } from '../mistakes.ts'
import { LEASE_FAULTS, LEASE_HOOKS, LEASE_RIGHT } from './leased-cases.ts'
import type { Focus } from './mix.ts'

export type HistorySetup = {
  /** Default: everything fits. */
  readonly cacheBytesMax?: number
  readonly triesMax?: number
  /** Milliseconds between trims of the log; default: never. */
  readonly trimMs?: number
  /** Milliseconds between losses of a third of the cached row sets, picked at random; default: never. */
  readonly shedMs?: number
  /** Half of the reads of rows come late. */
  readonly lateRows?: boolean
  /** Milliseconds that a writer rests between two writes, at most. Default 10. */
  readonly restMs?: number
  readonly focus?: Focus
  /** Part of the questions goes with tokens through `POST /oauth/decisions`, gRPC and its stream, and some stand. */
  readonly served?: boolean
  /** PostgreSQL crashes and recovers, every so many milliseconds. */
  readonly crashMs?: number
  /** Milliseconds that writes pause before they commit, at most. Default 6. */
  readonly pauseMs?: number
  /** Writers at once. Default 6. */
  readonly writers?: number
  /** The share of the writes that the first node makes, besides what falls to it by chance. Default none. */
  readonly ownShare?: number
  /** `sole`: the first node answers from memory; `shared`: each does. */
  readonly leased?: 'sole' | 'shared'
  /** The first node is stopped for 3 s, every so many milliseconds. */
  readonly stopMs?: number
  /** Runs in the database first. */
  readonly statement?: string
}
export type HistoryCase = {
  readonly name: string
  readonly edits: readonly Edit[]
  readonly setup: HistorySetup
}

/** Makes the caches of a node visible to its audit, and its rows liable to be lost, and lets a lease begin soon after another. */
export const HOOKS: readonly Edit[] = [
  {
    file: 'engine/store/cache/journal-cache-set.ts',
    find: 'readonly #caches = new Map<JournalId, JournalCache>()',
    replace:
      'readonly #caches = new Map<JournalId, JournalCache>()\n  protected readonly history = ((globalThis as unknown as { historyCaches?: unknown[] }).historyCaches ??= []).push(() => this.#caches)',
  },
  {
    file: 'engine/store/cache/row-budget.ts',
    find: '#hand: Evictable | null = null',
    replace: `#hand: Evictable | null = null
  protected readonly history = ((globalThis as unknown as { historySheds?: ((share: number) => void)[] }).historySheds ??= []).push((share) => {
    for (let row = this.#newest; row !== null; ) {
      const next = row.older
      if (Math.random() < share) {
        this.remove(row)
        row.evict()
      }
      row = next
    }
  })`,
  },
  ...LEASE_HOOKS,
]

const FEW_ROWS = 6_000
const SHEDDING: HistorySetup = { shedMs: 25, focus: 'groups', lateRows: true }
const CONDITIONS: HistorySetup = { focus: 'conditions' }
const DELEGATION: HistorySetup = { focus: 'delegation', served: true, trimMs: 40 }
const REVOCATIONS: HistorySetup = { focus: 'revocations', restMs: 2 }
const right = (name: string, setup: HistorySetup): HistoryCase => ({ name, edits: [], setup })

export const RIGHT: readonly HistoryCase[] = [
  right('everything in memory', {}),
  right('rows lost at random and read late, groups in motion', { ...SHEDDING, trimMs: 100 }),
  right('a cache of a few rows, the log trimmed all the time', { cacheBytesMax: FEW_ROWS, trimMs: 8 }),
  right('a cache of a few rows, answers from snapshots', { cacheBytesMax: 1_500, triesMax: 1 }),
  right('conditions and tuples of questions, rows lost at random', { ...SHEDDING, focus: 'conditions', trimMs: 40 }),
  right('PostgreSQL crashing and recovering', { cacheBytesMax: 20_000, trimMs: 50, crashMs: 1_500 }),
  right('a person, an agent and the delegation, rows lost at random', { ...SHEDDING, focus: 'delegation', trimMs: 40 }),
  right('agents with exchanged tokens, their claims and watched questions', DELEGATION),
  right('revocations that arrive together', REVOCATIONS),
  right('revocations that arrive together, and tokens that they end', { ...REVOCATIONS, served: true }),
  ...LEASE_RIGHT,
  right('with tokens over HTTP, gRPC and streams, and watched questions', { served: true, trimMs: 40 }),
]

/** Of the simulation's mistakes those that three processes come by within seconds. */
const fromSimulation = (name: string, setup: HistorySetup): HistoryCase => {
  const mistake = [...MISTAKES, ...CONDITION_MISTAKES].find((m) => m.name === name)
  if (mistake === undefined) throw new Error(`the simulation has no mistake "${name}"`)
  return { name, edits: mistake.edits, setup }
}
const planted = (name: string, options: { edits: readonly Edit[]; setup?: HistorySetup }): HistoryCase => ({
  name,
  edits: options.edits,
  setup: options.setup ?? {},
})

const FRESHNESS = 'engine/store/cache/freshness.ts'
const STORE = 'engine/store/postgres/store.ts'
const STANDING = 'server/serve/decisions/watched-questions.ts'
const ENTITLEMENTS = 'engine/store/entitlements/cache.ts'
const RAISE = 'const { before, after: position } = await raiseRevision(sql, log, {'

/** Locks, deletes, writes and reads in one statement, whose snapshot is older than the lock. */
const ONE_STATEMENT = `
  with r as (update revision set revision = revision + 1, write_id = (random() * 1e18)::bigint where organization_id = $1 and not closed returning *),
  q as (select * from jsonb_to_recordset($2::jsonb) q(op text, object text, relation text, subject text, "expiresAtMs" float8)),
  d as (delete from relationship t using q, r where q.op = 'delete' and t.organization_id = r.organization_id
    and t.object = q.object and t.relation = q.relation and t.subject = q.subject returning t.object, t.relation, t.subject),
  i as (insert into relationship as t (organization_id, object, relation, subject, expires_at)
    select r.organization_id, q.object, q.relation, q.subject, to_timestamp(q."expiresAtMs" / 1000) from q, r where q.op = 'write'
    on conflict (organization_id, object, relation, subject) do update set expires_at = excluded.expires_at
    where t.expires_at is distinct from excluded.expires_at returning object, relation, subject)
  select revision, write_id::text as "writeId", entitlement_version as "entitlementVersion",
    entitlement_write_id::text as "entitlementWriteId",
    (select coalesce(json_agg(k.object || '#' || k.relation || '@' || k.subject), '[]') from (table d union all table i) k) as took from r`

export const ONE_STATEMENT_WRITE: readonly Edit[] = [
  {
    file: STORE,
    find: RAISE,
    replace: `const only = changes.flatMap((c) => (c.kind === 'tuple' ? [{ op: c.op, ...c.tuple }] : []))
      const [whole] = only.length < changes.length ? [] : await sql.query<Awaited<ReturnType<typeof raiseRevision>>['after'] & { took: string[] }>(\`${ONE_STATEMENT}\`, [log, JSON.stringify(only)])
      const { before, after: position } = whole !== undefined ? { before: whole, after: whole } : await raiseRevision(sql, log, {`,
  },
  {
    file: STORE,
    find: 'const effective = await applyChanges({ sql, log, context }, changes)',
    replace: `const effective = whole === undefined ? await applyChanges({ sql, log, context }, changes)
        : changes.filter((c) => c.kind === 'tuple' && whole.took.includes(c.tuple.object + '#' + c.tuple.relation + '@' + c.tuple.subject))`,
  },
]

const ACTING = 'engine/decision-point/acting.ts'
const EVALUATED = '  if (theirs === undefined || own === undefined ||'
const ASKED = `    return decisionOf(parts, { request, asked, fresh: await parts.evaluator.ask(question) })`
const byAgent = (name: string, [file, find, replace]: readonly [string, string, string], served = false): HistoryCase =>
  planted(name, {
    edits: [{ file, find, replace }],
    setup: served ? DELEGATION : { focus: 'delegation' },
  })

const DELEGATION_FAULTS: readonly HistoryCase[] = [
  byAgent('an agent has what the person has', [
    ACTING,
    EVALUATED,
    `  if (theirs !== undefined) return theirs\n${EVALUATED}`,
  ]),
  byAgent('an agent has what it has itself, whatever the person has', [
    ACTING,
    'theirs.map((outcome, i) =>\n    both({ subject: outcome, actor: own[i]',
    'own.map((outcome, i) =>\n    both({ subject: outcome, actor: own[i]',
  ]),
  byAgent('a delegation is not looked at', [
    ACTING,
    'stands: isWithout(all, name) ? FALSE :',
    'stands: !isWithout(all, name) ? 1 :',
  ]),
  byAgent('person and agent are evaluated at two revisions', [
    'engine/decision-point/deciding.ts',
    ASKED,
    `    {
      const { actor, ...alone } = request
      if (actor === undefined) return decisionOf(parts, { request, asked, fresh: await parts.evaluator.ask(question) })
      const theirs = await decideAt(parts, alone, app)
      const fresh = await parts.evaluator.ask(question)
      const both = decisionOf(parts, { request, asked, fresh })
      const own = await decideAt(parts, { ...alone, subject: actor }, app)
      const permissions = both.permissions.map((one, i) => ({
        ...one,
        allowed: theirs.permissions[i]?.allowed === true && own.permissions[i]?.allowed === true && one.reasonCode !== 'delegation_missing',
      }))
      return { ...both, permissions }
    }`,
  ]),
  byAgent(
    'an agent that leaves its actor_token out acts as the person',
    [
      'identity/provider/grants/token-exchange.ts',
      'return actor === null && client === subject.clientId',
      'return actor === null',
    ],
    true,
  ),
  byAgent(
    'the claims of an exchanged token are the person’s',
    [
      'identity/provider/mint.ts',
      'actors.length === 0 || organization === null',
      'actors.length >= 0 || organization === null',
    ],
    true,
  ),
]

/** Caught within a few seconds by three busy processes: the short form plays these, and each case in which nothing may be wrong. */
export const QUICK_FAULTS: ReadonlySet<string> = new Set([
  'an agent has what the person has',
  'answers may be 50 ms old',
  'the revision is raised without holding its lock',
  'affectedKeys forgets the groups of a subject',
  'several logs are answered at different moments',
  'a writer is answered before its entry has a revision',
])

export const FAULTS: readonly HistoryCase[] = [
  ...DELEGATION_FAULTS,
  planted('answers may be 50 ms old', {
    edits: [
      {
        file: FRESHNESS,
        find: 'const vector = leased ?? (await this.#store.vector([...logs]))',
        replace: `const self = this as unknown as { kept?: Map<string, { at: number; vector: Vector }> }
      self.kept ??= new Map()
      const kept = self.kept.get([...logs].join(' '))
      const vector = kept !== undefined && Date.now() - kept.at < 50 ? kept.vector : await this.#store.vector([...logs])
      if (vector !== kept?.vector) self.kept.set([...logs].join(' '), { at: Date.now(), vector })`,
      },
    ],
  }),
  fromSimulation('rows of a load are installed without what was applied meanwhile', SHEDDING),
  fromSimulation('a delta goes past its target', {}),
  fromSimulation('two deltas of one log run at once', { restMs: 2, focus: 'memberships' }),
  planted('a write locks and changes in one statement', { edits: ONE_STATEMENT_WRITE }),
  planted('the revision is raised without holding its lock', {
    edits: [{ file: STORE, find: RAISE, replace: RAISE.replace('(sql, log', '(database, log') }],
  }),
  fromSimulation('affectedKeys forgets the groups of a subject', { focus: 'groups' }),
  fromSimulation('an answer that used the context of a question is kept for those after it', CONDITIONS),
  fromSimulation('the context of a tuple loses to that of the question', CONDITIONS),
  fromSimulation('a tuple of a question is kept for those after it', CONDITIONS),
  fromSimulation('a tuple with a condition outlives its deletion', CONDITIONS),
  fromSimulation('a question joins the statement that is under way', {}),
  fromSimulation('rows newer than the cache are installed', SHEDDING),
  fromSimulation('several logs are answered at different moments', { focus: 'tree' }),
  fromSimulation('a load survives the emptying of its cache', { trimMs: 5, focus: 'groups', cacheBytesMax: 20_000 }),
  fromSimulation('a trimmed log is taken for an empty delta', { trimMs: 5 }),
  fromSimulation('closures outlive a change of groups', { focus: 'groups' }),
  fromSimulation('expiry is judged by another clock than the vector’s', { focus: 'expiry' }),
  fromSimulation('a closure is kept beyond the expiry of one of its links', { focus: 'expiry', restMs: 300 }),
  fromSimulation('affectedKeys forgets memberships', { focus: 'memberships' }),
  fromSimulation('affectedKeys forgets role grants', { focus: 'grants' }),
  fromSimulation('the tree is taken as it was when the question was asked', { focus: 'tree' }),
  planted('an answer of the log is cut inside a revision', {
    edits: [
      {
        file: STORE,
        find: 'const last = entries[entriesMax]',
        replace: 'if (entries.length > 1) return entries.slice(0, -1)\n  const last = entries[entriesMax]',
      },
    ],
  }),
  planted('entitlements are kept whatever their version', {
    setup: { focus: 'gates' },
    edits: [
      {
        file: ENTITLEMENTS,
        find: 'const kept = known?.name === name ? known :',
        replace: 'const kept = known !== undefined && name !== null ? known :',
      },
    ],
  }),
  planted('entitlements of a later version pass for those asked for', {
    setup: { focus: 'gates' },
    edits: [
      {
        file: ENTITLEMENTS,
        find: 'if (read.version !== position.entitlementVersion || read.writeId !== position.entitlementWriteId) return undefined',
        replace: 'if (read.version < 0) return undefined',
      },
    ],
  }),
  planted('a snapshot is several snapshots', {
    setup: { cacheBytesMax: 1_500, triesMax: 1 },
    edits: [{ file: STORE, find: 'begin isolation level repeatable read read only', replace: 'begin read only' }],
  }),
  planted('a write is acknowledged before it is committed', {
    edits: [
      {
        file: 'engine/store/postgres/connection/connection.ts',
        find: "await connection.query('commit')",
        replace: "void connection.query('commit').catch(() => {})",
      },
    ],
  }),
  planted('a writer is answered before its entry has a revision', {
    setup: REVOCATIONS,
    edits: [
      {
        file: 'engine/store/postgres/connection/connection.ts',
        find: 'await Promise.all([...arrived].map(number))',
        replace: 'void Promise.all([...arrived].map(number)).catch(() => {})',
      },
    ],
  }),
  planted('an entry that arrives joins the numbering that is under way', {
    setup: REVOCATIONS,
    edits: [
      {
        file: 'engine/store/arrivals.ts',
        find: 'await numberArrivals(sql, log)\n        for',
        replace: `const self = batchers.get(log) as unknown as { flying?: Promise<void> | null }
        self.flying = numberArrivals(sql, log).finally(() => { self.flying = null })
        await self.flying
        for`,
      },
      {
        file: 'engine/store/arrivals.ts',
        find: 'else batcher.add({ log, resolve, reject })',
        replace: `else {
        const { flying } = batcher as unknown as { flying?: Promise<void> | null }
        if (flying) void flying.then(resolve, reject)
        else batcher.add({ log, resolve, reject })
      }`,
      },
    ],
  }),
  ...LEASE_FAULTS,
  planted('a token that was alive once is taken for alive', {
    setup: { served: true },
    edits: [
      {
        file: 'server/serve/decisions/answer.ts',
        find: 'if (decision.tokenRevoked) return denied({ token: null, question, decisionId })',
        replace: `const known = ((globalThis as unknown as { seenAlive?: Set<string> }).seenAlive ??= new Set())
  if (!decision.tokenRevoked) known.add(token.jti)
  else if (!known.has(token.jti)) return denied({ token: null, question, decisionId })`,
      },
    ],
  }),
  planted('answers on a stream may be 250 ms old', {
    setup: { served: true, focus: 'groups' },
    edits: [
      {
        file: 'server/serve/grpc/stream.ts',
        find: 'answer: await deps.answer(await state, readStreamQuestion(question))',
        replace: `answer: await (async () => {
        const self = deps as unknown as { kept?: Map<string, { at: number; answer: unknown }> }
        self.kept ??= new Map()
        const name = JSON.stringify([await state, question.permissions, question.entitlements])
        const kept = self.kept.get(name)
        if (kept !== undefined && Date.now() - kept.at < 250) return kept.answer
        const answer = await deps.answer(await state, readStreamQuestion(question))
        self.kept.set(name, { at: Date.now(), answer })
        return answer
      })() as never`,
      },
    ],
  }),
  planted('a position question is asked again only when it expires', {
    setup: { served: true },
    edits: [
      {
        file: STANDING,
        find: 'anyMoved || isDue(item, moved, deps.clock())',
        replace: 'item.dueAtMs !== null && item.dueAtMs <= deps.clock()',
      },
    ],
  }),
  planted('what was told of a position question is compared without its permissions', {
    setup: { served: true },
    edits: [
      {
        file: STANDING,
        find: 'return JSON.stringify([active, subject, organization, results, values, acr, authTime])',
        replace: 'return JSON.stringify([active, subject, organization, values, acr, authTime])',
      },
    ],
  }),
]
