/**
 * `npm run test:long [-- --short]`: the proofs of which `npm test` plays a part, each in full, and the `*.long.test.ts` that it leaves
 * out. `--short` a third of the latter, another one for each commit, with the part of their efforts that `npm test` would play, and
 * without those that take longest.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))
  .sort()
const isLong = (path: string): boolean => path.endsWith('.long.test.ts')
/** Whoever asks how long to go on imports `effort.ts`. */
const inPart = (): readonly string[] =>
  files.filter((path) => !isLong(path) && readFileSync(path, 'utf8').includes("/support/effort.ts'"))
/** Twenty-five seconds and more each, beside three others. */
const LONGEST: readonly string[] = [
  'test/e2e/demo.long.test.ts',
  'test/image/image.long.test.ts',
  'test/library/library.long.test.ts',
  'test/pdp/engine/decide/wide/wide-relations.long.test.ts',
  'test/pdp/engine/store/postgres/failover.long.test.ts',
  'test/pdp/engine/store/postgres/plans.long.test.ts',
  'test/pdp/identity/issuer/keys/master-key-command.long.test.ts',
  'test/pdp/server/console/foreign-ids.long.test.ts',
  'test/pdp/server/console/history.long.test.ts',
  'test/pdp/server/console/records-of-looks.long.test.ts',
  'test/pdp/server/serve/growth/growth.long.test.ts',
  'test/pdp/server/serve/scim/tester.long.test.ts',
  'test/pdp/tools/answers/every-tool.long.test.ts',
  'test/sidecar/doors/failures.long.test.ts',
  'test/sidecar/gateways/probe-gateway.long.test.ts',
  'test/sidecar/growth/growth.long.test.ts',
]
const SHARES = 3
/** Three commits in a row play all of them. */
function inShort(): readonly string[] {
  const commits = Number(execFileSync('git', ['rev-list', '--count', 'HEAD'], { encoding: 'utf8' }))
  const kept = files.filter((path) => isLong(path) && !LONGEST.includes(path))
  return kept.filter((_, index) => index % SHARES === commits % SHARES)
}

const words = process.argv.slice(2)
const short = words.includes('--short')
const { status } = spawnSync(
  join('node_modules', '.bin', 'node'),
  [
    join('node_modules', 'vitest', 'vitest.mjs'),
    'run',
    ...(short ? inShort() : ['.long.test.ts', ...inPart()]),
    ...words.filter((word) => word !== '--short'),
  ],
  { stdio: 'inherit', env: { ...process.env, ...(!short && { PORTCULLIS_LONG_TESTS: 'yes' }) } },
)
process.exitCode = status ?? 1
