/** Connections to PostgreSQL as the store and the identity service use them, with errors that say who is to blame. */
import pg from 'pg'
import { PdpError } from '../errors.ts'
import type { Sql } from './directory.ts'

/** One connection's view: rows as objects (`query`) or as arrays through a named, prepared statement (`prepared`). */
export type Connection = Pick<Sql, 'query'> & {
  prepared(name: string, text: string, values: readonly unknown[]): Promise<readonly (readonly unknown[])[]>
}
export type Database = Sql & {
  prepared: Connection['prepared']
  /** One transaction on one connection. */
  within<T>(begin: string, work: (connection: Connection) => Promise<T>): Promise<T>
}

export function databaseOver(pool: pg.Pool): Database {
  const within: Database['within'] = async (begin, work) => {
    const client = await pool.connect().catch((error: unknown) => {
      throw asPdpError(error)
    })
    // A connection that breaks between two statements says so by an event, which would end the process if nobody listened.
    let broken: Error | undefined
    const onError = (error: Error): void => {
      broken = error
    }
    client.on('error', onError)
    const connection = connectionOver(client)
    try {
      await connection.query(begin)
      const result = await work(connection)
      await connection.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch((e: Error) => {
        broken = e
      })
      throw error
    } finally {
      client.off('error', onError)
      client.release(broken)
    }
  }
  return {
    ...connectionOver(pool),
    within,
    transaction: (work) => within('begin', work),
  }
}

function connectionOver(client: pg.Pool | pg.PoolClient): Connection {
  return {
    async query<Row extends object>(text: string, values: readonly unknown[] = []) {
      const result = await client.query<Row>(text, [...values]).catch((error: unknown) => {
        throw asPdpError(error)
      })
      return result.rows
    },
    async prepared(name, text, values) {
      const result = await client
        .query<unknown[]>({ name, text, values: [...values], rowMode: 'array' })
        .catch((error: unknown) => {
          throw asPdpError(error)
        })
      return result.rows
    },
  }
}

/** Errors of the connection and of a server that is going away. What the statement itself did wrong passes unchanged. */
export function asPdpError(error: unknown): unknown {
  if (error instanceof PdpError) return error
  if (error instanceof pg.DatabaseError) {
    // 08 connection, 53 resources, 57P server going away, 25006 read-only (a standby), 40 serialization (retryable)
    if (/^(08|53|57P|40|25006)/.test(error.code ?? ''))
      return new PdpError('store_unavailable', 'the database is not available', { cause: error })
    // 22021, 22P05: U+0000, which a string of ours may hold and a text of PostgreSQL may not
    if (/^(22021|22P05)$/.test(error.code ?? ''))
      return new PdpError('request_invalid', 'a text holds the character U+0000', { cause: error })
    return error
  }
  return new PdpError('store_unavailable', 'the database cannot be reached', { cause: error })
}
