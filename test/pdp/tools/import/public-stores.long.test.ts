/**
 * Ten stores of OpenFGA and ten schemas of SpiceDB in the forms that public projects have, each with its own assertions: imported
 * as they are, after the edits that the message asks for, or not at all.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openImports } from '../commands/import-world.ts'

const CASES = new URL('../../../cases/imports/', import.meta.url).pathname
type Case = {
  readonly from: 'openfga' | 'spicedb'
  readonly name: string
  /** How many of its own assertions hold before anything is written. */
  readonly holds: number
  /** What the first try says, where it does not go at once. */
  readonly said?: RegExp
  /** The edit that the message asks for: a text and what takes its place, or an option. None: it cannot be brought. */
  readonly edit?: readonly [before: string, after: string] | readonly [option: string]
}
const STORES: readonly Case[] = [
  { from: 'openfga', name: 'juju.fga.yaml', holds: 4 },
  { from: 'openfga', name: 'governance.fga.yaml', holds: 4 },
  { from: 'openfga', name: 'cloud-projects.fga.yaml', holds: 3 },
  { from: 'openfga', name: 'workshop.fga.yaml', holds: 1 },
  { from: 'openfga', name: 'code.fga.yaml', holds: 5 },
  { from: 'openfga', name: 'addresses.fga.yaml', holds: 3 },
  { from: 'openfga', name: 'helpdesk.fga.yaml', holds: 2 },
  {
    from: 'openfga',
    name: 'mixed.fga.yaml',
    holds: 1,
    said: /parentheses say what comes first/,
    edit: ['[user] or editor but not blocked', '([user] or editor) but not blocked'],
  },
  {
    from: 'openfga',
    name: 'stale.fga.yaml',
    holds: 0,
    said: /FAIL .*\n.*\n--ignore-tests imports/,
    edit: ['--ignore-tests'],
  },
  { from: 'openfga', name: 'inline.fga.yaml', holds: 0, said: /name a condition that the model declares/ },
  { from: 'spicedb', name: 'agents.yaml', holds: 6 },
  { from: 'spicedb', name: 'platform-admin.yaml', holds: 2 },
  { from: 'spicedb', name: 'code-hosting.yaml', holds: 4 },
  { from: 'spicedb', name: 'weekdays.yaml', holds: 9 },
  { from: 'spicedb', name: 'cloud-roles.yaml', holds: 3 },
  { from: 'spicedb', name: 'conference.yaml', holds: 4 },
  { from: 'spicedb', name: 'words.yaml', holds: 8 },
  {
    from: 'spicedb',
    name: 'granting.yaml',
    holds: 2,
    said: /"arbiter->" goes through a relation that allows more than objects; give these a relation of their own/,
    edit: ['arbiter: plan | plan#subscriber', 'arbiter: plan'],
  },
  { from: 'spicedb', name: 'bank-signatures.yaml', holds: 0, said: /condition "signed" would take too long/ },
  { from: 'spicedb', name: 'all-teams.yaml', holds: 0, said: /"team\.all" has no translation/ },
]

test.each(STORES)(
  'a store of $from, $name, is brought with its $holds assertions, or refused with the reason',
  async (store) => {
    const { from, name, holds, said, edit } = store
    const world = await openImports()
    try {
      const path = join(CASES, from, name)
      const bring = (file: string, ...more: readonly string[]) =>
        world.run(from, file, '--app', 'brought', '-o', 'acme', '--create-users', ...more)
      const first = await bring(path)
      if (said === undefined) return expectBrought(first, holds)
      expect([first.status, `${first.out}${first.err}`]).toEqual([2, expect.stringMatching(said)])
      expect(await world.served.store.manifest('brought')).toBeNull()
      if (edit === undefined) return
      const [before, after] = edit
      if (after === undefined) return expectBrought(await bring(path, before), holds)
      const edited = join(world.folder, name)
      await writeFile(edited, (await readFile(path, 'utf8')).replace(before, after))
      return expectBrought(await bring(edited), holds)
    } finally {
      await world.close()
    }
  },
)

function expectBrought({ status, out, err }: { status: number; out: string; err: string }, holds: number): void {
  expect([status, err]).toEqual([0, ''])
  const [, openFga, spiceDb] = /^(?:tests: (\d+) passed, 0 failed|assertions: (\d+) hold)\n/.exec(out) ?? []
  expect(Number(openFga ?? spiceDb ?? 0)).toBe(holds)
  expect(out).toMatch(/brought has version 1\nstored: [1-9]\d* tuples/)
}
