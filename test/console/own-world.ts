/** A world on a database of its own, for one file of tests. */
import { openTestDatabase } from '../support/database.ts'
import { startWorld, type World } from './world.ts'

/** `close` drops the database, too. */
export type OwnWorld = World & { readonly connectionString: string }

export async function startOwnWorld(): Promise<OwnWorld> {
  const { connectionString, drop } = await openTestDatabase()
  try {
    const world = await startWorld(connectionString)
    const close = (): Promise<void> => world.close().finally(drop)
    return { ...world, connectionString, close }
  } catch (err) {
    await drop()
    throw err
  }
}
