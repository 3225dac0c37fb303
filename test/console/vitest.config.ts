/** The tests of the console in a real browser, which `npm run test:console` runs by themselves. */
import { defineConfig } from 'vitest/config'

/** Pictures and figures, which are made and not asserted. */
const EXTRAS = process.env.PORTCULLIS_CONSOLE_EXTRAS === 'yes'

export default defineConfig({
  test: {
    include: [EXTRAS ? 'test/console/*.extra.ts' : 'test/console/**/*.browser.ts'],
    root: process.cwd(),
    globalSetup: ['test/support/postgres-setup.ts'],
    experimental: { viteModuleRunner: false },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    retry: process.env.CI === undefined ? 0 : 1,
    pool: 'forks',
    maxWorkers: 2,
  },
})
