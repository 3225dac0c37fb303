/** Runs attack files against a real sidecar: `node test/attacks/run.ts [FILE…] [--fixture FILE] [--only ID]`. */
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readCases, readFixture } from './cases.ts'
import { createKeyring } from './credentials.ts'
import { play } from './play.ts'

const SHARED = fileURLToPath(new URL('../../../shared/attacks', import.meta.url))

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { fixture: { type: 'string' }, only: { type: 'string' } },
  })
  const files = positionals.length > 0 ? positionals : filesIn(SHARED)
  const keyring = createKeyring()
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const file of files) {
    const fixture = readFixture(values.fixture ?? fixtureBeside(file))
    for (const attack of readCases(file)) {
      if (values.only !== undefined && !attack.id.startsWith(values.only)) continue
      const outcome = await play(attack, fixture, keyring)
      counts[outcome.kind] += 1
      if (outcome.kind !== 'passed') process.stdout.write(`${outcome.kind} ${attack.id} ${outcome.why}\n`)
    }
  }
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
  if (counts.failed > 0) process.exitCode = 1
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => join(folder, name))

function fixtureBeside(file: string): string {
  const folder = dirname(file)
  return readdirSync(folder).includes('fixture.json') ? join(folder, 'fixture.json') : join(SHARED, 'fixture.json')
}

await main()
