/** Whether people and clients exist, in one statement for all who wait: a backend asks about others all the time. */
import { isId } from '../../domain/names.ts'
import { Batcher } from '../batcher.ts'
import type { Directory, Sql } from '../directory.ts'

type Wait = {
  readonly type: 'user' | 'service'
  readonly id: string
  readonly resolve: (exists: boolean) => void
  readonly reject: (error: unknown) => void
}

const STATEMENTS_MAX = 2
const EXISTING = `
  select 'user:' || user_id as name from user_account where user_id = any($1)
  union all select 'service:' || client_id from client where client_id = any($2)`

export function existence(sql: Pick<Sql, 'query'>): Directory['exists'] {
  async function answer(waits: readonly Wait[]): Promise<void> {
    const ids = (type: Wait['type']): readonly string[] =>
      waits.filter((wait) => wait.type === type).map(({ id }) => id)
    const rows = await sql.query<{ name: string }>(EXISTING, [ids('user'), ids('service')])
    const names = new Set(rows.map(({ name }) => name))
    for (const { type, id, resolve } of waits) resolve(names.has(`${type}:${id}`))
  }
  const batcher = new Batcher<Wait>({
    runningMax: STATEMENTS_MAX,
    schedule: setImmediate,
    run: answer,
    fail: ({ reject }, error) => reject(error),
  })
  return async ({ type, id }) =>
    // A text that is not an id names no one, so it does not take part in the shared statement.
    isId(id) && (await new Promise<boolean>((resolve, reject) => batcher.add({ type, id, resolve, reject })))
}
