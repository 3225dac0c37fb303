import { expect, test } from 'vitest'
import { editedSource } from '../mistakes.ts'
import { FAULTS, HOOKS } from './cases.ts'

test.each(FAULTS.map(({ name, edits }) => ({ name, edits })))(
  'the planted fault "$name" still fits the source',
  ({ name, edits }) => {
    expect(editedSource(name, [...HOOKS, ...edits]).size).toBeGreaterThan(0)
  },
)
