/** `npm run test:long`: the proofs of which `npm test` plays a part, each in full, and the `*.long.test.ts` that it leaves out. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const FILES = [
  '.long.test.ts',
  'test/consistency/simulation.test.ts',
  'test/image/image.test.ts',
  'test/pdp/decide/properties.test.ts',
  'test/pdp/identity/rfc/bad-forms.test.ts',
  'test/pdp/serve/management/races.test.ts',
  'test/pdp/store/embedded-postgres/embedded-postgres.test.ts',
  'test/sidecar/injector/pod/inject-any.test.ts',
  'test/sidecar/injector/termination.test.ts',
  'test/sidecar/listener/parser-bytes.test.ts',
]
const { status } = spawnSync(
  join('node_modules', '.bin', 'node'),
  [join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...FILES, ...process.argv.slice(2)],
  { stdio: 'inherit', env: { ...process.env, PORTCULLIS_LONG_TESTS: 'yes' } },
)
process.exitCode = status ?? 1
