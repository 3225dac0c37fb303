/** `npm run check`: everything about the code that can be checked without running it. Runs all, then says which failed. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type Check = { readonly name: string; readonly run: () => boolean }

const command = (name: string, ...words: readonly string[]): Check => ({
  name,
  run: () => spawnSync(join('node_modules', '.bin', words[0] ?? ''), words.slice(1), { stdio: 'inherit' }).status === 0,
})

const CHECKS: readonly Check[] = [
  // Incremental: a second run looks only at what has changed since.
  command('types', 'tsc', '-p', '.', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/check.tsbuildinfo'),
  // The library runs on older Nodes than the server: fewer names of the language are there.
  command(
    'types of the library',
    'tsc',
    '-p',
    'tsconfig.library.json',
    '--noEmit',
    '--incremental',
    '--tsBuildInfoFile',
    'node_modules/.cache/check-library.tsbuildinfo',
  ),
  command('format and lint', 'biome', 'check', '--error-on-warnings', '.'),
  command(
    'import directions',
    'depcruise',
    '--config',
    '.dependency-cruiser.cjs',
    'pdp',
    'sidecar',
    'proto',
    'test',
    'bin/dev',
  ),
  command('unused code and dependencies', 'knip', '--no-progress'),
  command('protocol lint', 'buf', 'lint'),
  { name: 'generated code is current', run: generatedIsCurrent },
  command('sizes, module state, references and words', 'node', 'test/tidy/tidy.ts'),
]

/** Generates into an empty folder and compares, so that the tree itself is never touched. */
function generatedIsCurrent(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-proto-'))
  try {
    const made = spawnSync(join('node_modules', '.bin', 'buf'), ['generate', '--output', folder], { stdio: 'inherit' })
    const fresh = join(folder, 'proto', 'gen')
    const differs = (name: string): boolean => {
      const file = name.endsWith('.ts')
      return file && readFileSync(join(fresh, name), 'utf8') !== readFileSync(join('proto', 'gen', name), 'utf8')
    }
    const names = (root: string): readonly string[] => readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
    const same = made.status === 0 && `${names(fresh)}` === `${names('proto/gen')}` && !names(fresh).some(differs)
    if (!same) console.error('proto/gen is not what `npm run proto` makes of proto/: run it and commit the result')
    return same
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const failed = CHECKS.filter(({ name, run }) => {
  console.log(`\n== ${name}`)
  return !run()
})
console.log(failed.length === 0 ? '\nall checks passed' : `\nfailed: ${failed.map((c) => c.name).join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
