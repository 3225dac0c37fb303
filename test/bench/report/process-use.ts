/** CPU time that processes have used (Linux): the figure that another load on the machine changes least. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const TICK_MS = 10

/** User and system time of one process, with its threads. 0 when it has ended. */
export function cpuMs(pid: number): number {
  const fields = statOf(pid)
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Memory of one process that is in RAM. 0 when it has ended. */
export function residentMb(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}

/** Of a PostgreSQL server and all its processes. */
export function postgresCpuMs(dataDirectory: string): number {
  const [first = '0'] = readFileSync(join(dataDirectory, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  const postmaster = Number(first)
  let sum = cpuMs(postmaster)
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (Number.isInteger(pid) && Number(statOf(pid)?.[1]) === postmaster) sum += cpuMs(pid)
  }
  return sum
}

/** Of the processes that this one has started, by what they do. This one calls, and so does what it started and has ended since. */
export type CpuByRole = { readonly caller: number; readonly server: number; readonly database: number }

/** CPU time used until now, in milliseconds. `callers`: further processes that only call. */
export function cpuByRole(callers: readonly number[] = []): CpuByRole {
  const all = new Map<number, { readonly name: string; readonly parent: number; readonly ms: number }>()
  for (const pid of readdirSync('/proc').map(Number)) {
    const fields = Number.isInteger(pid) ? statOf(pid) : null
    if (fields === null) continue
    const name = nameOf(pid)
    // Its own, and that of its processes that have ended.
    const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0)
    all.set(pid, { name, parent: Number(fields[1]), ms: ticks * TICK_MS })
  }
  const isOurs = (pid: number): boolean => {
    const one = all.get(pid)
    return pid === process.pid || (one !== undefined && isOurs(one.parent))
  }
  const sums = { caller: 0, server: 0, database: 0 }
  for (const [pid, { name, ms }] of all) {
    if (!isOurs(pid)) continue
    const isCaller = pid === process.pid || callers.includes(pid)
    sums[isCaller ? 'caller' : name === 'postgres' ? 'database' : 'server'] += ms
  }
  return sums
}

/** What follows the name, which may hold anything: state, parent and so on. */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}
