/** Speed and memory of the engine: in process, on PostgreSQL, and against what others would do for the same questions. */
import { benchCasbin } from './engine-casbin.ts'
import { benchLarge } from './engine-large.ts'
import { benchMemory } from './engine-memory.ts'
import { benchPeers } from './engine-peers.ts'
import { benchPostgres } from './engine-postgres.ts'
import { benchStream } from './engine-stream.ts'

const PARTS: Record<string, () => Promise<void>> = {
  memory: benchMemory,
  casbin: benchCasbin,
  postgres: benchPostgres,
  large: benchLarge,
  stream: benchStream,
  peers: benchPeers,
}

/** `words`: parts to run; all when none is named. */
export async function bench(words: readonly string[]): Promise<void> {
  for (const [name, run] of Object.entries(PARTS)) if (words.length === 0 || words.includes(name)) await run()
}
