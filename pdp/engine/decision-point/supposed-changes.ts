/** Answers questions as they would be after changes of memberships, roles and groups that are not written. */

import type { Change } from '../../shared/domain/change.ts'
import type { ListPage } from '../../shared/domain/decision.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import { typeOf } from '../../shared/domain/names.ts'
import { createModelCompiler } from '../decide/models/known-models.ts'
import { ANY_APP, heldPermissions } from '../decide/roles.ts'
import { TUPLES_PER_CHECK_MAX } from '../decide/search/search.ts'
import { EventLoopTurns } from '../store/cache/event-loop-turns.ts'
import { evaluatorOf } from '../store/cache/snapshot-evaluator.ts'
import type { Reading, RowKey, RowSet, Snapshot, Store } from '../store/contract.ts'
import { withModels } from '../worker/worker.ts'
import { listPage } from './list-pages.ts'

/** The kinds of changes that can be supposed. */
export type ProposedChange = Extract<Change, { readonly kind: 'tuple' | 'membership' | 'role_grant' }>

export type Answers = {
  /** Permission keys that roles give, of every app. */
  held(organization: string, subject: string): Promise<readonly string[]>
  resources(question: {
    readonly organization: string
    readonly subject: { readonly type: string; readonly id: string }
    readonly relation: string
    readonly type: string
    readonly pageSize: number
  }): Promise<ListPage>
}

/** `changes`: changes of the journal `log`, added to what is stored. Each answer is of one moment. */
export function answersAfter(
  store: Pick<Store, 'snapshot'>,
  log: JournalId,
  changes: readonly ProposedChange[],
): Answers {
  const snapshot: Store['snapshot'] = (use) => store.snapshot((at) => use(supposing(at, log, changes)))
  const turns = new EventLoopTurns()
  const compile = createModelCompiler()
  const exists = (): Promise<boolean> => Promise.resolve(true)
  return {
    async held(organization, subject) {
      const request = { organization, subject, app: ANY_APP }
      const { value } = await snapshot((at) =>
        evaluatorOf(at, turns).ask({ organization, evaluate: (view) => heldPermissions(view, request) }),
      )
      return [...new Set(value.permissions.map(({ key }) => key))].sort()
    },
    resources: (question) =>
      withModels(() =>
        listPage(
          { store: { snapshot }, compile, tuplesMax: TUPLES_PER_CHECK_MAX, turns, exists },
          { ...question, kind: 'resources', app: null },
        ),
      ),
  }
}

function supposing(at: Snapshot, log: JournalId, changes: readonly ProposedChange[]): Snapshot {
  const joins = changes.flatMap((change) =>
    change.kind === 'tuple' && change.op === 'write' && typeOf(change.tuple.object) === 'group' ? [change.tuple] : [],
  )
  // The rows that a new group of the subject would need: groups above it and its grants, as for stored groups.
  const above: readonly RowKey[] = joins.flatMap(({ object }) => [
    { log, kind: 'groups', subject: `${object}#member` },
    { log, kind: 'grants', subject: object },
  ])
  return {
    names: (...asked) => at.names(...asked),
    async rows(logs, keys): Promise<Reading> {
      const needs = keys.some((key) => key.log === log && (key.kind === 'grants' || key.kind === 'groups'))
      const { vector, rows } = await at.rows(logs, needs ? [...keys, ...above] : keys)
      return { vector, rows: rows.map((row) => (row.key.log === log ? changes.reduce(changed, row) : row)) }
    },
  }
}

function changed(row: RowSet, change: ProposedChange): RowSet {
  if ('membership' in row)
    return change.kind === 'membership' && row.key.user === change.user
      ? { ...row, membership: change.membership }
      : row
  if ('grants' in row) {
    if (change.kind !== 'role_grant' || row.key.subject !== change.grant.subject) return row
    const others = row.grants.filter(({ id }) => id !== change.grant.id)
    return { ...row, grants: change.op === 'write' ? [...others, change.grant] : others }
  }
  if (!('groups' in row) || change.kind !== 'tuple') return row
  const { object, relation, subject } = change.tuple
  if (row.key.subject !== subject || relation !== 'member' || typeOf(object) !== 'group') return row
  const group = `${object}#member`
  const others = row.groups.filter((one) => one.subject !== group)
  const isJoined = change.op === 'write' && change.tuple.condition === undefined
  return { ...row, groups: isJoined ? [...others, { subject: group, expiresAtMs: null }] : others }
}
