/** Folders for data that dies with the run. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  findPostmaster,
  isRunning,
  locateCluster,
  signalPostmaster,
} from '../../../pdp/engine/store/embedded-postgres/process.ts'

const MEMORY = '/dev/shm'
const FREE_BYTES_MIN = 2 * 1024 ** 3

/**
 * A new folder, in memory where there is room: a copy of a database is hundreds of small files, and making them on a disk
 * took twenty times as long. No program in it can be run, since such places often forbid it.
 */
export function makeDataFolder(prefix: string): string {
  return mkdtempSync(join(hasRoom(MEMORY) ? MEMORY : tmpdir(), `${prefix}${process.pid}-`))
}

/** Deletes what killed runs left under this prefix, and ends their databases; memory would fill. */
export async function sweepDataFolders(prefix: string): Promise<void> {
  for (const place of [MEMORY, tmpdir()].filter((one) => existsSync(one)))
    for (const name of readdirSync(place)) {
      const maker = name.startsWith(prefix) ? /^(\d+)-\w+$/.exec(name.slice(prefix.length))?.[1] : undefined
      if (maker === undefined || isRunning(Number(maker))) continue
      const folder = join(place, name)
      const cluster = await locateCluster(folder)
      const database = findPostmaster(cluster)
      if (database !== null) signalPostmaster(cluster, database.pid, 'SIGQUIT')
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    }
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= FREE_BYTES_MIN
  } catch {
    return false
  }
}
