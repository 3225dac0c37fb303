/** `npm run test:console`: the console in a real Chromium. `--pictures` makes those of the documentation. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { findChromium } from './chromium.ts'

const words = process.argv.slice(2)
const [files, rest] = [
  words.includes('--pictures') ? ['test/console/pictures'] : [],
  words.filter((word) => word !== '--pictures'),
]
if (findChromium() === null) {
  process.stdout.write(
    'console: not tested, because there is no Chromium (apt-get install chromium, or CHROMIUM=path)\n',
  )
} else {
  const { status } = spawnSync(
    join('node_modules', '.bin', 'node'),
    [
      join('node_modules', 'vitest', 'vitest.mjs'),
      'run',
      '--config',
      'test/console/vitest.config.ts',
      ...files,
      ...rest,
    ],
    {
      stdio: 'inherit',
      env: { ...process.env, ...(files.length === 0 ? {} : { PORTCULLIS_CONSOLE_EXTRAS: 'yes' }) },
    },
  )
  process.exitCode = status ?? 1
}
