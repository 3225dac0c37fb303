/**
 * Stores decisions of all PDPs in PostgreSQL: each denial, and counts by minute, route and reason. Questions do not wait for it: it
 * writes batches.
 */
import type { Queries } from '../../../engine/store/directory.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import type { Log } from '../../../shared/process/log.ts'
import { type ActingFor, actingFor, isWhole } from './decision-log.ts'
import type { AnswerObserver } from './observed-answers.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** How many denials and counts may wait for the next batch. Further ones are not stored; the log has their number. */
const DENIALS_MAX = 5_000
const COUNTS_MAX = 10_000
/** How many rows one statement deletes. */
const TRIMMED_TOGETHER = 5_000
/** The longest route and the longest request id that are kept: both come from outside. */
const TEXT_MAX = 512
const RANKED_MAX = 100

export type DeniedDecision = {
  readonly id: string
  readonly atMs: number
  readonly subject: string
  readonly relation: string
  readonly resource: string
  readonly reason: string
  /** The route of the request; empty: no route is known. `requestId` is then empty, too. */
  readonly route: string
  readonly requestId: string
  readonly decisionId: string
  /** Members are absent in denials that were stored before these members existed. */
  readonly askedAs: ActingFor & { readonly app?: string | null; readonly isWhole?: boolean }
}
export type DenialFilter = {
  readonly subject?: string
  readonly resource?: string
  readonly route?: string
  readonly reason?: string
  /** The id of the request or of the decision. */
  readonly request?: string
  /** A range in milliseconds since the epoch: `fromMs` is inside, `toMs` is not. */
  readonly fromMs?: number
  readonly toMs?: number
}
export type RankedDenials = {
  readonly route: string
  readonly reason: string
  readonly hour: number
  readonly day: number
}
export type DecisionArchive = {
  readonly observer: AnswerObserver
  /** Denials, the newest first; only those older than `before`, if it is not null. */
  denied(
    organization: string,
    filter: DenialFilter,
    page: { readonly before: string | null; readonly countMax: number },
  ): Promise<readonly DeniedDecision[]>
  /** Routes and reasons, ordered by their denials in the last hour, then in the last day. */
  ranked(organization: string): Promise<readonly RankedDenials[]>
  /** The decisions of each minute in the last hour that had any. */
  perMinute(
    organization: string,
  ): Promise<readonly { readonly minuteMs: number; readonly allowed: number; readonly denied: number }[]>
  /** Writes all that waits. Never rejects: if a write fails, the decisions are lost here and the log says so. */
  flush(): Promise<void>
  /** Deletes decisions that are older than `keptDays`. */
  trim(keptDays: number): Promise<void>
}

type Denial = Omit<DeniedDecision, 'id'> & { readonly organization: string }
type Count = {
  readonly organization: string
  readonly minuteMs: number
  readonly route: string
  readonly reason: string
  count: number
}

export function createDecisionArchive({ sql, log }: { readonly sql: Queries; readonly log: Log }): DecisionArchive {
  const batch = createBatch()
  return {
    observer: { answered: batch.add },
    denied: readDenied(sql),
    ranked: (organization) => readRanked(sql, organization),
    perMinute: (organization) => readMinutes(sql, organization),
    async flush() {
      const { denials, counts, leftOut } = batch.take()
      if (leftOut > 0) log.warn({ event: 'decisions_not_kept', decisions_count: leftOut })
      try {
        if (denials.length > 0) await insertDenials(sql, denials)
        if (counts.length > 0) await addCounts(sql, counts)
      } catch (err) {
        // These decisions are lost for the archive, but the process's log has them.
        log.warn({ event: 'decisions_not_kept', decisions_count: denials.length, err })
      }
    },
    trim: (keptDays) => trim(sql, keptDays),
  }
}

type Waiting = { readonly denials: readonly Denial[]; readonly counts: readonly Count[]; readonly leftOut: number }

/** Decisions that wait to be written, within a bound. */
function createBatch(): { readonly add: AnswerObserver['answered']; readonly take: () => Waiting } {
  let denials: Denial[] = []
  let counts = new Map<string, Count>()
  let leftOut = 0

  function count(
    organization: string,
    of: { readonly atMs: number; readonly route: string; readonly reason: string },
  ): void {
    const minuteMs = Math.floor(of.atMs / MINUTE_MS) * MINUTE_MS
    // The route comes last, because only this part comes from outside and could contain a line break.
    const key = `${organization}\n${minuteMs}\n${of.reason}\n${of.route}`
    const known = counts.get(key)
    if (known !== undefined) known.count += 1
    else if (counts.size < COUNTS_MAX)
      counts.set(key, { organization, minuteMs, route: of.route, reason: of.reason, count: 1 })
    else leftOut += 1
  }

  return {
    add({ token, question, answer, startedMs: atMs }) {
      const { organization, subject, permissions, decisionId, app } = answer
      if (organization === null || subject === null) return
      const route = shortened(question.route)
      for (const { relation, resource, allowed, reasonCode } of permissions) {
        const reason = allowed ? '' : reasonCode
        count(organization, { atMs, route, reason })
        if (allowed) continue
        if (denials.length >= DENIALS_MAX) leftOut += 1
        else
          denials.push({
            organization,
            atMs,
            subject: subjectName(subject),
            reason,
            route,
            decisionId,
            relation,
            resource,
            askedAs: { app, isWhole: isWhole(token, question), ...actingFor(token, question) },
            requestId: shortened(question.requestId),
          })
      }
    },
    take() {
      const waiting = { denials, counts: [...counts.values()], leftOut }
      denials = []
      counts = new Map()
      leftOut = 0
      return waiting
    },
  }
}

const shortened = (text = ''): string => (text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) : text).replaceAll('\0', '')

async function insertDenials(sql: Queries, rows: readonly Denial[]): Promise<void> {
  await sql.query(
    `insert into denied_decision (denied_at, organization_id, subject, relation, resource, reason, route, request_id, decision_id, asked_as)
     select to_timestamp(at / 1000.0), organization, subject, relation, resource, reason, route, request, decision, asked_as::jsonb
     from unnest($1::float8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
       rows(at, organization, subject, relation, resource, reason, route, request, decision, asked_as)`,
    [
      rows.map(({ atMs }) => atMs),
      ...(
        ['organization', 'subject', 'relation', 'resource', 'reason', 'route', 'requestId', 'decisionId'] as const
      ).map((key) => rows.map((row) => row[key])),
      rows.map(({ askedAs }) => JSON.stringify(askedAs)),
    ],
  )
}

/** Adds counts in the order of their key, so that two PDPs that write the same rows cannot deadlock. */
async function addCounts(sql: Queries, sums: readonly Count[]): Promise<void> {
  await sql.query(
    `insert into decision_count (organization_id, minute, route, reason, decisions_count)
     select organization, to_timestamp(minute / 1000.0), route, reason, count
     from unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::bigint[]) rows(organization, minute, route, reason, count)
     order by organization collate "C", minute, route collate "C", reason collate "C"
     on conflict (organization_id, minute, route, reason)
       do update set decisions_count = decision_count.decisions_count + excluded.decisions_count`,
    [
      sums.map(({ organization }) => organization),
      sums.map(({ minuteMs }) => minuteMs),
      sums.map(({ route }) => route),
      sums.map(({ reason }) => reason),
      sums.map(({ count }) => count),
    ],
  )
}

/** Deletes old rows in small batches. Several PDPs may do this at the same time. */
async function trim(sql: Queries, keptDays: number): Promise<void> {
  for (const [table, column] of [
    ['denied_decision', 'denied_at'],
    ['decision_count', 'minute'],
  ] as const)
    for (let gone = TRIMMED_TOGETHER; gone === TRIMMED_TOGETHER; ) {
      const rows = await sql.query<{ gone: number }>(
        `with old as (delete from ${table} where ctid = any(array(
           select ctid from ${table} where ${column} < now() - make_interval(secs => $1) limit ${TRIMMED_TOGETHER}
           for update skip locked)) returning 1)
         select count(*)::int as gone from old`,
        [(keptDays * DAY_MS) / 1_000],
      )
      gone = rows[0]?.gone ?? 0
    }
}

export const readDenied =
  (sql: Queries): DecisionArchive['denied'] =>
  async (organization, filter, { before, countMax }) => {
    const { subject, resource, route, reason, request, fromMs, toMs } = filter
    return sql.query<DeniedDecision>(
      `select id::text, (extract(epoch from denied_at) * 1000)::float8 as "atMs", subject, relation, resource, reason, route,
       request_id as "requestId", decision_id as "decisionId", asked_as as "askedAs"
     from denied_decision where organization_id = $1 and ($2::bigint is null or id < $2)
       and ($3::text is null or subject = $3) and ($4::text is null or resource = $4) and ($5::text is null or route = $5)
       and ($6::text is null or reason = $6) and ($7::text is null or request_id = $7 or decision_id = $7)
       and ($8::float8 is null or denied_at >= to_timestamp($8 / 1000.0))
       and ($9::float8 is null or denied_at < to_timestamp($9 / 1000.0))
     order by denied_decision.id desc limit $10`,
      [
        organization,
        before,
        ...[subject, resource, route, reason, request].map((text) => text ?? null),
        fromMs ?? null,
        toMs ?? null,
        countMax,
      ],
    )
  }

async function readRanked(sql: Queries, organization: string): Promise<readonly RankedDenials[]> {
  return sql.query<RankedDenials>(
    `select route, reason, sum(decisions_count)::float8 as day,
       coalesce(sum(decisions_count) filter (where minute > now() - interval '1 hour'), 0)::float8 as hour
     from decision_count where organization_id = $1 and reason <> '' and minute > now() - interval '1 day'
     group by route, reason order by hour desc, day desc, route, reason limit ${RANKED_MAX}`,
    [organization],
  )
}

async function readMinutes(sql: Queries, organization: string) {
  return sql.query<{ readonly minuteMs: number; readonly allowed: number; readonly denied: number }>(
    `select (extract(epoch from minute) * 1000)::float8 as "minuteMs",
       coalesce(sum(decisions_count) filter (where reason = ''), 0)::float8 as allowed,
       coalesce(sum(decisions_count) filter (where reason <> ''), 0)::float8 as denied
     from decision_count where organization_id = $1 and minute > now() - interval '1 hour' group by minute`,
    [organization],
  )
}
