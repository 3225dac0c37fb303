/** What OpenFGA's own command line writes of a store on a real server is brought whole: its export, its tuples, its model. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { planOpenFga } from '../../../../pdp/tools/import/openfga.ts'
import { readOpenFga } from '../../../../pdp/tools/import/openfga-api.ts'
import { unconfined } from '../../../../pdp/tools/model-test/confined-files.ts'
import { readModelText } from '../../../../pdp/tools/model-test/model-text.ts'
import { fgaBinary, openFgaBinary } from '../../../differential/binary.ts'
import { type Peer, startOpenFga } from '../../../differential/openfga.ts'
import { bookSteps } from '../../../docs/book-steps.ts'
import { LONG } from '../../../support/effort.ts'
import { openImports } from '../commands/import-world.ts'

/** Making the programs takes minutes, once. */
const MAKE = { make: LONG }
const FGA = fgaBinary(process.env, MAKE)
const SERVER = openFgaBinary(process.env, MAKE)
const PAGE = readFileSync(new URL('../../../../docs/migrate.md', import.meta.url), 'utf8')
/** The store that the page shows, which was typed. */
const TYPED = bookSteps(PAGE).find((step) => step.kind === 'file' && step.name === 'store.fga.yaml')

describe.skipIf(FGA === null || 'missing' in SERVER)('a store that fga exported', () => {
  let world: Awaited<ReturnType<typeof openImports>>
  let peer: Peer
  let store: string
  const fga = (...words: readonly string[]): string =>
    execFileSync(FGA ?? '', [...words, '--api-url', peer.origin], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  beforeAll(async () => {
    world = await openImports()
    peer = await startOpenFga('path' in SERVER ? SERVER.path : '')
    const typed = await world.file('typed.fga.yaml', TYPED?.kind === 'file' ? TYPED.text : '')
    store = JSON.parse(/^\{.*?\}\}(?=\D)/.exec(`${fga('store', 'import', '--file', typed)}\n`)?.[0] ?? '{}').store.id
  }, 60_000)
  afterAll(async () => {
    await peer.close()
    await world.close()
  })

  test('is what the page shows: its tests run, its tuples come, and it answers', async () => {
    const exported = await world.file('store.fga.yaml', fga('store', 'export', '--store-id', store))
    const args = ['openfga', exported, '--app', 'docs', '-o', 'acme', '--create-users']
    expect(await world.run(...args)).toMatchObject({
      status: 0,
      err: '',
      out: expect.stringMatching(/^tests: 1 passed/),
    })
    expect(await world.can('user:ann', 'viewer', 'doc:1')).toBe(true)
    expect(await world.can('user:bob', 'viewer', 'doc:1')).toBe(false)
  })

  test('is the same over the API, and its model the same in JSON', async () => {
    const read = await readOpenFga({ url: peer.origin, store, token: null, fetch })
    const plan = planOpenFga(read.model, read.tuples)
    expect([plan.refusals, plan.tuples.length]).toEqual([[], 2])
    const path = await world.file(
      'model.json',
      fga('model', 'get', '--store-id', store, '--format', 'json', '--field', 'model'),
    )
    const text = await readModelText({ kind: 'file', file: path, line: 1, from: path }, unconfined)
    expect(compileModel(text)).toEqual(compileModel(read.model))
    expect(compileModel(readFileSync(path, 'utf8'))).toEqual(compileModel(read.model))
  })

  test.each(['json', 'simple-json', 'csv', 'yaml'])(
    'has tuples that are imported as fga prints them: %s',
    async (format) => {
      const printed = fga('tuple', 'read', '--store-id', store, '--output-format', format)
      const path = join(world.folder, `${format}.${format.replace('simple-', '')}`)
      // The type is one of ours, which only an import of the whole store renames.
      await world.file(`${format}.${format.replace('simple-', '')}`, printed.replaceAll('organization', 'org'))
      expect(await world.runCommand('relationships', 'import', path, '-o', 'other')).toMatchObject({
        status: 0,
        out: 'stored: 2 tuples of 2 lines\n',
      })
    },
  )
})
