/** Opens a unix socket that only its owner and group may use: the file system authenticates the gateway. */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { StartError } from '../../pdp/shared/process/exit.ts'

const OWNER_AND_GROUP = 0o660
const NOBODY_ELSE = 0o117

/** Replaces a socket that a killed process has left, but no other file. Throws StartError when it cannot listen. */
export async function openSocketFile(path: string, what: string, listen: () => Promise<unknown>): Promise<void> {
  const before = process.umask(NOBODY_ELSE)
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found !== undefined && !found.isSocket()) throw new Error('there is a file that is not a socket')
    if (found !== undefined) rmSync(path)
    await listen()
    chmodSync(path, OWNER_AND_GROUP)
  } catch (err) {
    throw new StartError(`${what} cannot listen on ${path}: ${messageOf(err)}`)
  } finally {
    process.umask(before)
  }
}
