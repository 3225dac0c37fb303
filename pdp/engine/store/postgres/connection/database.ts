/** The members of a database that the store uses, in types that name no driver. */
import type { Queries, Sql, Transaction } from '../../directory.ts'

/** One connection's view: rows as objects (`query`) or as arrays through a named, prepared statement (`prepared`). */
export type Connection = Queries & {
  prepared<T>(name: string, text: string, values: readonly unknown[], read: ReadRows<T>): Promise<T>
}
/** `told`: to be called with the server's timeline, where the rows tell it; throws PdpError `store_unavailable`. */
export type ReadRows<T> = (rows: readonly (readonly unknown[])[], told: (timeline: number) => void) => T
export type Database = Sql & {
  prepared: Connection['prepared']
  /** One transaction on one connection. Its time counts from `sinceMs` (performance.now()), by default from now. */
  within<T>(begin: string, work: (connection: Connection & Transaction) => Promise<T>, sinceMs?: number): Promise<T>
  /** One transaction that looks at or deletes whole tables: the bounds of `lengthyMs` hold for it. */
  lengthy: Database['within']
}

/** Told of each statement as it begins, by its name or first word; what it returns, once it ended, with what was thrown or null. */
export type OnStatement = (name: string) => (error: unknown) => void

/** Milliseconds, on top of which the server has bounds of its own (postgres.ts). */
export type TimeLimits = {
  /** For a statement that decisions wait for. */
  readonly decisionMs: number
  /** For any other statement. */
  readonly statementMs: number
  /** For a transaction, with the wait for its connection. */
  readonly transactionMs: number
  /** For a transaction that looks at or deletes whole tables. */
  readonly lengthyMs: number
}
