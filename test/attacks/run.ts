/** Runs attack files against a real sidecar: `npm run attack [-- FILE…] [--fixture FILE] [--only ID]`. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { misused, readArguments } from '../support/programs/arguments.ts'
import { readFixture } from './case-format.ts'
import { readCases } from './case-reader.ts'
import { createKeyring } from './credentials.ts'
import { play } from './play.ts'

/** Without any file, all that is known: the given ones beside the project, and our own. */
const SHARED = fileURLToPath(new URL('../../../shared/attacks', import.meta.url))
const USAGE = 'npm run attack [-- FILE…] [--fixture FILE] [--only ID]'
const OWN = fileURLToPath(new URL('./data/', import.meta.url))

async function main(): Promise<void> {
  const { values, positionals } = readArguments(
    { allowPositionals: true, options: { fixture: { type: 'string' }, only: { type: 'string' } } },
    USAGE,
  )
  const missing = [...positionals, ...(values.fixture === undefined ? [] : [values.fixture])].find(
    (file) => !existsSync(file),
  )
  if (missing !== undefined) misused(`there is no file ${missing}`, USAGE)
  const files = positionals.length > 0 ? positionals : [SHARED, OWN].flatMap(filesIn)
  const keyring = createKeyring()
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const file of files) {
    const fixture = readFixture(values.fixture ?? fixtureBeside(file))
    for (const read of readCases(file)) {
      const id = read.kind === 'case' ? read.attack.id : read.id
      if (values.only !== undefined && !id.startsWith(values.only)) continue
      const outcome = await play(read, fixture, keyring)
      counts[outcome.kind] += 1
      if (outcome.kind !== 'passed') process.stdout.write(`${outcome.kind} ${id} ${outcome.why}\n`)
    }
  }
  if (counts.passed + counts.failed + counts.skipped === 0) misused('there is no such case', USAGE)
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
  if (counts.failed > 0) process.exitCode = 1
}

const filesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.jsonl'))
        .map((name) => join(folder, name))
    : []

/** A file elsewhere is about the fixture that we have. */
function fixtureBeside(file: string): string {
  const places = [dirname(file), SHARED, OWN].map((folder) => join(folder, 'fixture.json'))
  return places.find((place) => existsSync(place)) ?? join(OWN, 'fixture.json')
}

await main()
