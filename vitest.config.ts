import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LONG } from './test/support/effort.ts'

/** One of the long files is named. */
const NAMED = process.argv.some((word) => word.includes('.long.'))

/** One after the other, these files take longest: begun last, they would run on alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => /simulation|library|books/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

// What Node compiled once: without it, reading the sources is half of the start of each program and worker.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache', 'compiled')

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Whole programs and long waits are left to `npm run test:long`, unless their files are named.
    exclude: LONG || NAMED ? [] : ['test/**/*.long.test.ts'],
    globalSetup: ['test/support/postgres-setup.ts'],
    setupFiles: ['test/support/passwords/quick-scrypt.ts'],
    // Modules run as Node runs them: type stripping, real import.meta, no bundler between the test and the code.
    // No loader for mocked modules, either, of which there are none: it took a third of what imports take.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Outer bounds of what ends by itself: many times what a test takes, for machines that are slow or have more to do.
    testTimeout: LONG || NAMED ? 600_000 : 60_000,
    hookTimeout: LONG || NAMED ? 600_000 : 120_000,
    expect: { poll: { timeout: 15_000 } },
    // In CI a stall of a shared machine must not fail a change. The report prints `(retry x1)`: that is a fault to mend, too.
    retry: process.env.CI === undefined ? 0 : 1,
    pool: 'forks',
    // Files share a worker and its modules, which keep no state (the tidy check refuses it): loading them took a third of the time.
    isolate: false,
    // Twice the cores of a small machine: half of the time, tests wait for processes and clocks.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
  },
})
