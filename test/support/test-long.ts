/**
 * `npm run test:long [-- --short]`: the proofs of which `npm test` plays a part, each in full, and the `*.long.test.ts` that it leaves
 * out. `--short` only the latter, with the part of their efforts that `npm test` would play.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whoever asks how long to go on imports `effort.ts`. */
const inPart = (): readonly string[] =>
  readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.long.test.ts'))
    .map((name) => join('test', name))
    .filter((path) => readFileSync(path, 'utf8').includes("/support/effort.ts'"))
    .sort()
const words = process.argv.slice(2)
const short = words.includes('--short')
const { status } = spawnSync(
  join('node_modules', '.bin', 'node'),
  [
    ...[join('node_modules', 'vitest', 'vitest.mjs'), 'run', '.long.test.ts', ...(short ? [] : inPart())],
    ...words.filter((word) => word !== '--short'),
  ],
  { stdio: 'inherit', env: { ...process.env, ...(!short && { PORTCULLIS_LONG_TESTS: 'yes' }) } },
)
process.exitCode = status ?? 1
