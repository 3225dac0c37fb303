/** CPU time that processes have used (Linux): the figure that another load on the machine changes least. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const TICK_MS = 10

/** User and system time of one process, with its threads. 0 when it has ended. */
export function cpuMs(pid: number): number {
  const fields = statOf(pid)
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Memory of one process that is in RAM. */
export function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0
  return Number(kb) / 1_024
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

/** What follows the name, which may hold anything: state, parent and so on. */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}
