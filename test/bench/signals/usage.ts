/** What the PDPs and PostgreSQL have used so far. */
import { cpuMs, postgresCpuMs } from '../report/process-use.ts'
import type { World } from './world.ts'

export type Usage = { readonly statements: number; readonly pdpMs: number; readonly postgresMs: number }

export async function usage({ opened: { sql }, replicas, folder }: World): Promise<Usage> {
  const [row] = await sql.query<{ calls: number }>('select sum(calls)::float8 as calls from pg_stat_statements')
  return {
    statements: row?.calls ?? 0,
    pdpMs: replicas.reduce((sum, { part }) => sum + cpuMs(part.pid()), 0),
    postgresMs: postgresCpuMs(folder),
  }
}

export const sum = (all: readonly Usage[]): Usage => ({
  statements: all.reduce((total, { statements }) => total + statements, 0),
  pdpMs: all.reduce((total, { pdpMs }) => total + pdpMs, 0),
  postgresMs: all.reduce((total, { postgresMs }) => total + postgresMs, 0),
})
export const minus = (a: Usage, b: Usage): Usage => ({
  statements: a.statements - b.statements,
  pdpMs: a.pdpMs - b.pdpMs,
  postgresMs: a.postgresMs - b.postgresMs,
})
/** For each of `count`. */
export const shown = ({ statements, pdpMs, postgresMs }: Usage, count: number): string =>
  `${(statements / count).toFixed(1)} statements, ${(pdpMs / count).toFixed(2)} ms of CPU time of the PDPs and ${(postgresMs / count).toFixed(2)} ms of PostgreSQL`
