/** Loads code that decisions do not need after the PDP listens, so that questions are answered after two thirds of the time. */
import { loadOpenfga } from '../../engine/decide/language/document.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import { StartError } from '../../shared/process/exit.ts'
import type { Shutdown } from '../../shared/process/shutdown.ts'

/** Loads all parts. If one fails, everything is closed, and this rejects with StartError. */
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

/** Loads the parts one by one, so that questions are answered in between. */
async function loadEach(parts: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of parts) {
    await new Promise(setImmediate)
    await load()
  }
  await new Promise(setImmediate)
  loadOpenfga()
}
