/**
 * `npm run test:long`: the proofs of which `npm test` plays a part, each in full, and the `*.long.test.ts` that it leaves out.
 * `--files` only names the files of `npm test` among them.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whoever asks how long to go on imports `effort.ts`. */
const inPart = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.long.test.ts'))
  .map((name) => join('test', name))
  .filter((path) => readFileSync(path, 'utf8').includes("/support/effort.ts'"))
  .sort()
const words = process.argv.slice(2)

if (words.includes('--files')) {
  console.log(inPart.join('\n'))
} else {
  const { status } = spawnSync(
    join('node_modules', '.bin', 'node'),
    [join('node_modules', 'vitest', 'vitest.mjs'), 'run', '.long.test.ts', ...inPart, ...words],
    { stdio: 'inherit', env: { ...process.env, PORTCULLIS_LONG_TESTS: 'yes' } },
  )
  process.exitCode = status ?? 1
}
