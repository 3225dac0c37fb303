import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { PDP_GROUPS } from './pdp-mutants.ts'
import { SIDECAR_GROUPS } from './sidecar-mutants.ts'

describe('each fault that `npm run mutation` plants', () => {
  const groups = [...SIDECAR_GROUPS, ...PDP_GROUPS]
  const mutants = groups.flatMap((group) => group.mutants)

  test.each(mutants)('$file: $name is a place that occurs once, and a change', ({ file, find, replace }) => {
    expect(readFileSync(file, 'utf8').split(find)).toHaveLength(2)
    expect(replace).not.toBe(find)
  })

  test.each(groups)('$name is looked for by tests that are there', ({ tests }) => {
    expect(tests.filter((path) => !existsSync(path))).toEqual([])
  })
})
