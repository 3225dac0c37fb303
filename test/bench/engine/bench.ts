/** Speed and memory of the engine: in process, on PostgreSQL, and against what others would do for the same questions. */
/** Imported one by one: what one part loads (a Redis client, a server) can slow down another. */
const PARTS: Record<string, (words: readonly string[]) => Promise<void>> = {
  memory: async () => (await import('./memory.ts')).benchMemory(),
  casbin: async () => (await import('./casbin.ts')).benchCasbin(),
  postgres: async () => (await import('./postgres.ts')).benchPostgres(),
  large: async () => (await import('./large.ts')).benchLarge(),
  compare: async () => (await import('./compare.ts')).benchCompare(),
  tangled: async () => (await import('../../differential/tangled.ts')).benchTangled(),
  stream: async (ways) => (await import('./stream.ts')).benchStream(ways),
}

/** `words`: parts to run, all when none is named; after `stream`, the ways to ask. */
export async function bench(words: readonly string[]): Promise<void> {
  const ways = words.includes('stream') ? words.slice(words.indexOf('stream') + 1) : []
  for (const [name, run] of Object.entries(PARTS)) if (words.length === 0 || words.includes(name)) await run(ways)
}
