/** Tests that need no PostgreSQL, which takes longer to start than they take to run. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    root: process.cwd(),
    experimental: { viteModuleRunner: false, nodeLoader: false },
    testTimeout: 60_000,
    pool: 'forks',
    isolate: false,
    maxWorkers: 2,
  },
})
