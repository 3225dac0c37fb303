/** Role grants in memory: found by id and by subject alike, after any writes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GrantIndex } from '../../../../../pdp/engine/store/memory/grant-index.ts'
import type { RoleGrant } from '../../../../../pdp/shared/domain/role.ts'

const grant: fc.Arbitrary<RoleGrant> = fc.record({
  id: fc.constantFrom('1', '2', '3', '4'),
  app: fc.constant(null),
  role: fc.constantFrom('reader', 'writer'),
  subject: fc.constantFrom('user:a', 'user:b', 'group:g'),
})

test('holds what was set last for each id, and nothing that was deleted', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ grant, add: fc.boolean() })), (moves) => {
      const index = new GrantIndex()
      const model = new Map<string, RoleGrant>()
      for (const move of moves) {
        const { id } = move.grant
        if (move.add) {
          index.set(id, move.grant)
          model.delete(id)
          model.set(id, move.grant)
        } else {
          index.delete(id)
          model.delete(id)
        }
      }
      expect([...index.values()]).toEqual([...model.values()])
      for (const id of ['1', '2', '3', '4', '5']) expect(index.get(id)).toEqual(model.get(id))
      for (const subject of ['user:a', 'user:b', 'group:g', 'user:nobody']) {
        expect(index.to(subject)).toEqual([...model.values()].filter((held) => held.subject === subject))
      }
    }),
    { numRuns: 500 },
  )
})

test('changes no list that it gave out', () => {
  const held = { id: '1', app: null, role: 'reader', subject: 'user:a' }
  const index = new GrantIndex([held])
  const before = index.to('user:a')
  index.set('2', { ...held, id: '2' })
  index.delete('1')
  expect(before).toEqual([held])
})
