/** The interface of a database that the store uses. It names no driver. */
import type { Queries, Sql, Transaction } from '../../directory.ts'

/** One connection's view: rows as objects (`query`) or as arrays through a named, prepared statement (`prepared`). */
export type Connection = Queries & {
  prepared<T>(name: string, text: string, values: readonly unknown[], read: ReadRows<T>): Promise<T>
}
/** `told`: to be called with the server's timeline, if the rows have it; throws PdpError `store_unavailable` for an earlier one. */
export type ReadRows<T> = (rows: readonly (readonly unknown[])[], told: (timeline: number) => void) => T
export type Database = Sql & {
  prepared: Connection['prepared']
  /** Runs a transaction on one connection. Its time limit counts from `sinceMs` (performance.now()), by default from now. */
  within<T>(begin: string, work: (connection: Connection & Transaction) => Promise<T>, sinceMs?: number): Promise<T>
  /** Runs a transaction that reads or deletes whole tables: its time limit is `lengthyMs`. */
  lengthy: Database['within']
}

/** Called as a statement begins, with its name or first word. The function that it returns is called at the end, with the error or null. */
export type OnStatement = (name: string) => (error: unknown) => void

/** Time limits in milliseconds. The server has limits of its own besides (postgres.ts). */
export type TimeLimits = {
  /** For a statement that decisions wait for. */
  readonly decisionMs: number
  /** For any other statement. */
  readonly statementMs: number
  /** For a transaction, including the wait for its connection. */
  readonly transactionMs: number
  /** For a transaction that reads or deletes whole tables. */
  readonly lengthyMs: number
}
