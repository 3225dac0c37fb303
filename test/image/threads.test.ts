/** A thread's file is started by its address, so no import leads to it: the images find it by that address. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { threadsIn } from './assemble.ts'

test.each([
  ['pdp/worker/worker.ts', './thread.js'],
  ['pdp/identity/keys/foreign-hash.ts', './bcrypt-thread.js'],
])('%s needs %s', (file, thread) => {
  expect(threadsIn(readFileSync(file, 'utf8'))).toEqual([thread])
})
