/** What no import leads to from the start of a program, and the images hold: files of threads, and packages that browsers load. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { packagesIn, threadsIn } from '../../bin/dev/image/assemble.ts'

test.each([
  ['pdp/engine/worker/worker.ts', './thread.js'],
  ['pdp/identity/people/passwords/imported-hash.ts', './bcrypt-thread.js'],
  ['sidecar/config/reloaded-config.ts', './reading-thread.js'],
])('%s needs %s', (file, thread) => {
  expect(threadsIn(readFileSync(file, 'utf8'))).toEqual([thread])
})

test('pages of the console bring the packages that their modules import', () => {
  const editor = ['commands', 'language', 'lint', 'view'].map((name) => `@codemirror/${name}`)
  expect(packagesIn('pdp/server/console/assets')).toEqual([...editor, '@lezer/highlight'])
})
