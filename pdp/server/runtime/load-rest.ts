/** Loads what no decision needs when the PDP listens already: it answers questions a third of its time to start earlier. */
import { loadOpenfga } from '../../engine/decide/language/document.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import { StartError } from '../../shared/process/exit.ts'
import type { Shutdown } from '../../shared/process/shutdown.ts'

/** Without all of it the PDP does not go on. Rejects with StartError, after everything was closed. */
export async function loadRest(
  shutdown: Pick<Shutdown, 'hold' | 'run'>,
  parts: readonly (() => Promise<unknown>)[],
): Promise<void> {
  try {
    await shutdown.hold(loadEach(parts))
  } catch (err) {
    await shutdown.run(null)
    const why = messageOf(err)
    throw new StartError(`A part of the PDP cannot be loaded: ${why}`, { cause: err })
  }
}

/** Questions get their turn in between. */
async function loadEach(parts: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of parts) {
    await new Promise(setImmediate)
    await load()
  }
  await new Promise(setImmediate)
  loadOpenfga()
}
