/**
 * `npm run mutation`: plants one small fault at a time in a copy of the tree, and runs the tests that must find it.
 * `-- WORD …` plays only the groups or faults whose names contain one of the words. Exit code 1 if a fault survives.
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { misused } from '../support/programs/arguments.ts'
import type { Group, Mutant } from './mutant.ts'
import { PDP_GROUPS } from './pdp-mutants.ts'
import { SIDECAR_GROUPS } from './sidecar-mutants.ts'

/** A fault may make a test wait for ever. */
const RUN_MS_MAX = 240_000

type Result = 'found' | 'survived' | 'timed out'

const GROUPS = [...SIDECAR_GROUPS, ...PDP_GROUPS]
const words = process.argv.slice(2)
const isWanted = (group: Group, { name, file }: Mutant): boolean =>
  words.length === 0 || words.some((word) => `${group.name} ${file} ${name}`.includes(word))

function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-mutation-'))
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
  for (const path of files.split('\0')) if (path !== '') cpSync(path, join(folder, path))
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return folder
}

function runTests(folder: string, tests: readonly string[]): Promise<Result> {
  const config = tests.some((path) => path.startsWith('test/pdp/engine/decide'))
    ? []
    : ['--config', 'test/mutation/vitest.config.ts']
  const args = [
    join('node_modules', 'vitest', 'vitest.mjs'),
    'run',
    ...config,
    '--bail',
    '1',
    '--reporter',
    'dot',
    ...tests,
  ]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: 'ignore' })
  return new Promise((done) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      done('timed out')
    }, RUN_MS_MAX)
    child.once('close', (status) => {
      clearTimeout(timer)
      done(status === 0 ? 'survived' : 'found')
    })
  })
}

async function playGroup(folder: string, group: Group): Promise<readonly string[]> {
  const mutants = group.mutants.filter((mutant) => isWanted(group, mutant))
  if (mutants.length === 0) return []
  console.log(`\n${group.name}`)
  if ((await runTests(folder, group.tests)) !== 'survived')
    throw new Error(`the tests of ${group.name} fail without a fault`)
  const survivors: string[] = []
  for (const mutant of mutants) {
    const path = join(folder, mutant.file)
    const text = readFileSync(path, 'utf8')
    const parts = text.split(mutant.find)
    if (parts.length !== 2)
      throw new Error(
        `"${mutant.find}" occurs ${parts.length - 1} times in ${mutant.file}: rewrite the fault "${mutant.name}"`,
      )
    writeFileSync(path, parts.join(mutant.replace))
    const result = await runTests(folder, group.tests)
    writeFileSync(path, text)
    console.log(`  ${result.padEnd(9)}  ${mutant.name} (${mutant.file})`)
    if (result === 'survived') survivors.push(`${mutant.name} (${mutant.file})`)
  }
  const found = mutants.length - survivors.length
  console.log(`  ${group.name}: ${found} of ${mutants.length} found`)
  return survivors
}

if (GROUPS.every((group) => group.mutants.every((mutant) => !isWanted(group, mutant))))
  misused(`no group or fault has ${words.join(' or ')} in its name`, 'npm run mutation [-- WORD…]')
const folder = copyTree()
try {
  const survivors: string[] = []
  for (const group of GROUPS) survivors.push(...(await playGroup(folder, group)))
  const count = GROUPS.flatMap((group) => group.mutants.filter((mutant) => isWanted(group, mutant))).length
  const found = count - survivors.length
  console.log(`\nmutation score: ${found} of ${count} (${Math.round((100 * found) / Math.max(1, count))} %)`)
  if (survivors.length > 0) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
