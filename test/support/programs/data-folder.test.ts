import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { makeDataFolder, sweepDataFolders } from './data-folder.ts'

test('a folder of a process that has ended is swept away, and no other', async () => {
  const prefix = 'portcullis-sweep-'
  const program = `import { makeDataFolder } from ${JSON.stringify(new URL('data-folder.ts', import.meta.url).href)}
    console.log(makeDataFolder('${prefix}'))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', program], {
    encoding: 'utf8',
  })
  const left = stdout.trim()
  const [ours, another] = [makeDataFolder(prefix), makeDataFolder('portcullis-other-')]
  expect([left, ours, another].map((folder) => existsSync(folder))).toEqual([true, true, true])
  await sweepDataFolders(prefix)
  expect([left, ours, another].map((folder) => existsSync(folder))).toEqual([false, true, true])
  for (const folder of [ours, another]) rmSync(folder, { recursive: true })
})
