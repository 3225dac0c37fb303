/** Statements as the server counts them, by pg_stat_statements. */
import pg from 'pg'

/** `blocks`: of tables and indexes that the executions looked at. */
export type Counted = {
  readonly text: string
  readonly calls: number
  readonly rows: number
  readonly blocks: number
}
export type StatementCounter = {
  /** What the database executed while `work` ran, apart from counting and from greeting connections: each store opens one every two seconds. */
  during(work: () => Promise<unknown>): Promise<readonly Counted[]>
  close(): Promise<void>
}

export async function openStatementCounter(connectionString: string): Promise<StatementCounter> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query('create extension if not exists pg_stat_statements')
  const database = '(select oid from pg_database where datname = current_database())'
  return {
    async during(work) {
      await client.query(`select pg_stat_statements_reset(0, ${database}, 0)`)
      await work()
      const { rows } = await client.query<Counted>(
        `select query as text, calls::int, rows::int, (shared_blks_hit + shared_blks_read)::int as blocks from pg_stat_statements
         where dbid = ${database} and query not like all (array['%pg_stat_statements%', '%inet_server_addr%'])
         order by calls desc`,
      )
      return rows
    },
    close: () => client.end(),
  }
}

export const calls = (counted: readonly Counted[]): number => counted.reduce((sum, s) => sum + s.calls, 0)
export const blocks = (counted: readonly Counted[]): number => counted.reduce((sum, s) => sum + s.blocks, 0)
