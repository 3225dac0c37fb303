/**
 * `npm run upgrade [-- --short | COMMIT… | restore | servers | --dumps]`: two versions serve one database under load; then a backup under load is put back; then
 * the database goes on at other servers.
 * `--dumps` writes what each earlier version leaves in a database, for the tests.
 */
import { rmSync } from 'node:fs'
import { readArguments, requireNames } from '../support/programs/arguments.ts'
import { makeDataFolder } from '../support/programs/data-folder.ts'
import { playMove } from './moved.ts'
import { playRestore } from './restore.ts'
import { makeDump, playUpgrade } from './side-by-side.ts'
import { checkOut, RELEASED, shortName } from './versions.ts'

const USAGE = 'npm run upgrade [-- --short | COMMIT… | restore | servers | --dumps]'
const { values, positionals } = readArguments(
  { allowPositionals: true, options: { short: { type: 'boolean' }, dumps: { type: 'boolean' } } },
  USAGE,
)
const PARTS = [...RELEASED.map(shortName), 'restore', 'servers']
requireNames(positionals, PARTS, `${USAGE}\nto name: ${PARTS.join(', ')}`)
const seconds = values.short === true ? 2 : 10
let failed = false

async function play(name: string, work: (folder: string) => Promise<readonly string[]>): Promise<void> {
  const folder = makeDataFolder('portcullis-upgrade-')
  const startedMs = performance.now()
  const complaints = await work(folder).catch((err: unknown) => [err instanceof Error ? `${err.stack}` : String(err)])
  const took = `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`
  console.log(`${complaints.length === 0 ? 'ok  ' : 'FAIL'} ${name}, ${took}`)
  for (const complaint of complaints) console.log(`     ${complaint}`)
  failed ||= complaints.length > 0
  if (complaints.length === 0) rmSync(folder, { recursive: true, force: true })
  else console.log(`     logs: ${folder}`)
}

const isChosen = (name: string): boolean => positionals.length === 0 || positionals.includes(name)
// The short form plays the newest alone.
const versions = values.short === true ? RELEASED.slice(-1) : RELEASED

for (const version of versions.filter((one) => isChosen(shortName(one)))) {
  const root = checkOut(version)
  if (root === null) {
    console.log(`skip ${shortName(version)}: the history of this clone does not have it`)
    continue
  }
  if (values.dumps === true)
    await play(`dump of ${shortName(version)}`, (folder) => makeDump({ version, root, folder }))
  else await play(`from ${shortName(version)}`, (folder) => playUpgrade({ version, root, folder, seconds }))
  rmSync(root, { recursive: true, force: true })
}
if (values.dumps !== true && isChosen('restore'))
  await play('backup and restore', (folder) => playRestore({ folder, seconds }))
if (values.dumps !== true && isChosen('servers')) await play('other servers', (folder) => playMove({ folder }))
process.exitCode = failed ? 1 : 0
