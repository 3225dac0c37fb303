/** Folders for data that dies with the run. */
import { mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const FREE_BYTES_MIN = 2 * 1024 ** 3

/**
 * A new folder, in memory where there is room: a copy of a database is hundreds of small files, and making them on a disk
 * took twenty times as long. No program in it can be run, since such places often forbid it.
 */
export function makeDataFolder(prefix: string): string {
  return mkdtempSync(join(hasRoom(MEMORY) ? MEMORY : tmpdir(), prefix))
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= FREE_BYTES_MIN
  } catch {
    return false
  }
}
