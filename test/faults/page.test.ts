/** The page on faults shows every fault, each once. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FAULTS } from './catalogue.ts'
import { faultTables } from './page.ts'

const MARK = '<!-- npm run faults -- --write -->'
const MEASURED = { complaints: [], replays: 0, writes: 9, slowestWriteMs: 0 }
const played = FAULTS.map((fault) => ({
  fault,
  verdict: { ...MEASURED, name: fault.name, asked: 20, unavailable: 1, slowestAskMs: 1_540, backMs: 40 },
}))
const namesOf = (text: string): string[] => [...text.matchAll(/^\|`([a-z0-9-]+)`\|/gm)].map(([, name = '']) => name)

test('faultTables has a row for each fault, whatever is promised of it', () => {
  const text = faultTables(played)
  expect(namesOf(text).toSorted()).toEqual(FAULTS.map(({ name }) => name).toSorted())
  expect(text).toContain('|`kill-pdp`|1/20|1.5|0.0|')
})

test('docs/faults.md has the same faults in the same order', () => {
  const [, written = ''] = readFileSync(new URL('../../docs/faults.md', import.meta.url), 'utf8').split(MARK)
  expect(namesOf(written)).toEqual(namesOf(faultTables(played)))
})
