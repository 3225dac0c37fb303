/** Writes relationships inside a transaction of the application, so that its own rows and the relationships commit together. */
import { randomBytes } from 'node:crypto'
import type { Change, Precondition, WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { formatTuple } from '../../../shared/domain/names.ts'
import { withModels } from '../../worker/worker.ts'
import { assertChanges } from '../changes.ts'
import type { TransactionClient, Written } from '../contract.ts'
import type { Queries } from '../directory.ts'
import { asPdpError, isDatabaseError } from './connection/errors.ts'
import type { SharedHolder } from './connection/shared-holder.ts'
import { type SoleHolder, sharedLock } from './connection/sole-holder.ts'

export type JoinedWrite = {
  readonly log: string
  readonly changes: readonly Change[]
  readonly context: WriteContext
  readonly preconditions?: readonly Precondition[]
}
type Row = {
  readonly outcome: string
  readonly detail: string
  readonly revision: string
  readonly write_id: string
  readonly entitlement_version: string
  readonly entitlement_write_id: string
}

/**
 * `schema`: where our tables are, as `"name"`. The statement itself is in migrations/0011-write-in-transaction.sql.
 * Positions that it returns are not remembered, since the transaction may be rolled back.
 */
export function createJoinedWrite(
  sql: Queries,
  schema: string,
  holder: Pick<SoleHolder | SharedHolder, 'surrender' | 'raised'> | null = null,
) {
  /** Clients whose database is known to be this one. */
  const known = new WeakSet<TransactionClient>()
  return async (client: TransactionClient, write: JoinedWrite): Promise<Written> => {
    const { log, changes, context, preconditions = [] } = write
    if (changes.some(({ kind }) => kind !== 'tuple')) throw new TypeError('a transaction takes tuples only')
    await withModels(() => assertChanges(log, changes))
    const xid = known.has(client) ? await transactionOf(client) : await recognize(client, sql)
    known.add(client)
    // The application may commit at any time, so the lease is given up now.
    const given = holder?.surrender()
    if (given !== undefined) await ask(client, under(schema), [given])
    const [row] = await ask<Row>(
      client,
      `select outcome, detail, revision::text, write_id, entitlement_version::text, entitlement_write_id
       from ${schema}.write_relationships($1, $2, $3, $4, $5, $6, $7)`,
      [
        xid,
        log,
        JSON.stringify(preconditions.map(({ tuple, exists }) => ({ ...tuple, exists, name: formatTuple(tuple) }))),
        JSON.stringify(changes),
        randomBytes(8).readBigInt64BE().toString(),
        context.actor,
        context.requestId,
      ],
    )
    holder?.raised()
    return writtenOf(row)
  }
}

function writtenOf(row: Row | undefined): Written {
  switch (row?.outcome) {
    case 'changed':
    case 'unchanged':
      return {
        changed: row.outcome === 'changed',
        position: {
          revision: Number(row.revision),
          writeId: row.write_id,
          entitlementVersion: Number(row.entitlement_version),
          entitlementWriteId: row.entitlement_write_id,
        },
      }
    case 'organization_unknown':
    case 'precondition_failed':
      throw new PdpError(row.outcome, row.detail)
    default:
      throw new TypeError('write_relationships did not say what it did')
  }
}

/** Until the client's transaction ends: it is not held back by the lease that was given up for it, and none begins. */
const under = (schema: string): string =>
  `select set_config('portcullis.under', coalesce($1, current_setting('portcullis.under', true), ''), true),
    ${sharedLock(`${schema}.`)}::text`

/** The id of the client's transaction. Outside a transaction it is that of this statement's own, which ends at once. */
async function transactionOf(client: TransactionClient): Promise<string> {
  const [row] = await ask<{ xid: string }>(client, 'select pg_current_xact_id()::text as xid', [])
  return row?.xid ?? ''
}

/**
 * Does what transactionOf does, and checks that the client is connected to the store's database: only there does the store's own
 * connection see a lock that the client's transaction takes.
 */
async function recognize(client: TransactionClient, sql: Queries): Promise<string> {
  const key = randomBytes(8).readBigInt64BE()
  const [row] = await ask<{ xid: string }>(
    client,
    'select pg_current_xact_id()::text as xid, pg_advisory_xact_lock_shared($1::bigint)::text as locked',
    [key.toString()],
  )
  const found = await sql.query(
    `select 1 from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
     and database = (select oid from pg_database where datname = current_database())
     and classid = $1::bigint::oid and objid = $2::bigint::oid`,
    [BigInt.asUintN(32, key >> 32n).toString(), BigInt.asUintN(32, key).toString()],
  )
  if (found.length > 0) return row?.xid ?? ''
  throw new PdpError(
    'request_invalid',
    'the client has no open transaction on the database of the store: send BEGIN first',
  )
}

/** Sends an unnamed statement whose results are all text, so that the application's type parsers do not matter. */
async function ask<R>(client: TransactionClient, text: string, values: readonly unknown[]): Promise<readonly R[]> {
  try {
    const { rows } = await client.query({ text, values: [...values], types: AS_TEXT })
    return rows as readonly R[]
  } catch (err) {
    if (isCode(err, '25P01'))
      throw new PdpError('request_invalid', 'the client has no open transaction: send BEGIN first', { cause: err })
    if (isCode(err, '25P02'))
      throw new PdpError('request_invalid', 'the transaction of the client has failed before: roll it back', {
        cause: err,
      })
    throw asPdpError(err)
  }
}

const AS_TEXT = { getTypeParser: () => (value: string) => value }
const isCode = (error: unknown, code: string): boolean => isDatabaseError(error) && error.code === code
