/**
 * `npm run test:console [-- --short]`: the console in a real Chromium; in short, an operator's tasks, and signing in at the sidecar.
 * `--pictures` makes those of the documentation.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { findChromium } from './chromium.ts'

const words = process.argv.slice(2)
const pictures = words.includes('--pictures')
const SHORT = ['tasks', 'sign-in'].map((name) => `test/console/${name}.browser.ts`)
const files = [
  ...(pictures ? ['test/console/pictures'] : []),
  ...(words.includes('--short') ? SHORT : []),
  ...words.filter((word) => word !== '--pictures' && word !== '--short'),
]
if (findChromium() === null) {
  process.stdout.write(
    'console: not tested, because there is no Chromium (apt-get install chromium, or CHROMIUM=path)\n',
  )
} else {
  const { status } = spawnSync(
    join('node_modules', '.bin', 'node'),
    [join('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config', 'test/console/vitest.config.ts', ...files],
    {
      stdio: 'inherit',
      env: { ...process.env, ...(pictures && { PORTCULLIS_CONSOLE_EXTRAS: 'yes' }) },
    },
  )
  process.exitCode = status ?? 1
}
