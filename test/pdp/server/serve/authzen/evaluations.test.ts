import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json } from '../harness.ts'
import { decisions, openRecords, question, record, user, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

describe('evaluations', () => {
  const alice = { subject: user('alice'), action: { name: 'read' } }
  const one = record('record-1')
  const two = record('record-2')

  test.each<[string, Json, readonly boolean[]]>([
    ['c-3-2-1: resources', { ...alice, evaluations: [{ resource: one }, { resource: two }] }, [true, true]],
    [
      'c-3-2-2: actions',
      {
        subject: user('bob'),
        resource: one,
        evaluations: [{ action: { name: 'read' } }, { action: { name: 'write' } }],
      },
      [true, false],
    ],
    [
      'c-3-2-4: subjects',
      { action: { name: 'write' }, resource: two, evaluations: [{ subject: user('alice') }, { subject: user('bob') }] },
      [false, true],
    ],
    [
      'c-3-2-5: no defaults',
      { evaluations: [question('alice', 'read', 'record-1'), question('bob', 'write', 'record-1')] },
      [true, false],
    ],
    [
      'c-3-2-6: a context of its own',
      { ...alice, context: { a: 1 }, evaluations: [{ resource: one, context: { b: 2 } }] },
      [true],
    ],
    [
      'c-3-2-7: an empty item inherits all',
      { ...alice, resource: one, evaluations: [{}, { subject: user('nobody') }] },
      [true, false],
    ],
    ['c-3-4-1: an item that lacks an entity', { ...alice, evaluations: [{ resource: one }, {}] }, [true, false]],
    [
      'an item that is no object',
      { ...alice, resource: one, evaluations: [{}, 'x', null, []] },
      [true, false, false, false],
    ],
    [
      'an entity is replaced whole',
      { ...alice, resource: one, evaluations: [{ resource: { id: 'record-1' } }] },
      [false],
    ],
  ])('%s', async (_name, body, expected) => {
    const answer = await world.post('evaluations', body)
    expect([answer.status, decisions(answer)]).toEqual([200, expected])
    expect(answer.body.decision).toBeUndefined()
  })

  test('say in the item what it lacks', async () => {
    const { body } = await world.post('evaluations', { ...alice, evaluations: [{}] })
    expect(body.evaluations[0].context.error).toEqual({
      status: 400,
      message: expect.stringContaining('/evaluations/0/resource is missing'),
    })
  })

  const vector = (names: readonly string[], semantic: unknown): Json => ({
    ...{ subject: user('bob'), resource: one, options: { evaluations_semantic: semantic, other: 1 } },
    evaluations: names.map((name) => ({ action: { name } })),
  })
  test.each([
    ['execute_all', ['read', 'write', 'read'], [true, false, true]],
    ['deny_on_first_deny', ['read', 'write', 'read'], [true, false]],
    ['deny_on_first_deny', ['read', 'read'], [true, true]],
    ['permit_on_first_permit', ['write', 'read', 'write'], [false, true]],
    ['permit_on_first_permit', ['write'], [false]],
  ])('under %s %j is %j', async (semantic, names, expected) => {
    expect(decisions(await world.post('evaluations', vector(names, semantic)))).toEqual(expected)
  })

  test('end with an item that failed under deny_on_first_deny', async () => {
    const items = [{ resource: one }, {}, { resource: one }]
    const body = { ...alice, options: { evaluations_semantic: 'deny_on_first_deny' }, evaluations: items }
    expect(decisions(await world.post('evaluations', body))).toEqual([true, false])
  })

  test.each([[{}], [{ evaluations: [] }], [{ evaluations: null }]])(
    'with %j is one evaluation (c-3-4-2)',
    async (more) => {
      const { status, body } = await world.post('evaluations', { ...question('alice', 'read', 'record-1'), ...more })
      expect([status, body.decision, body.evaluations]).toEqual([200, true, undefined])
    },
  )

  test.each<[string, Json]>([
    ['an unknown semantic', vector(['read'], 'whatever')],
    ['a semantic that is no text', vector(['read'], 7)],
    ['options that are no object', { ...alice, options: [], evaluations: [{}] }],
    ['items that are no list', { ...alice, evaluations: {} }],
    ['257 items', { ...alice, resource: one, evaluations: Array.from({ length: 257 }, () => ({})) }],
    ['a default of a wrong type', { subject: 'alice', evaluations: [question('alice', 'read', 'record-1')] }],
    ['no items and no subject', { action: { name: 'read' }, resource: one }],
  ])('with %s are refused', async (_name, body) => {
    expect((await world.post('evaluations', body)).status).toBe(400)
  })

  test('of a person are denied where they are about somebody else', async () => {
    const body = {
      action: { name: 'read' },
      resource: one,
      evaluations: ['alice', 'bob'].map((id) => ({ subject: user(id) })),
    }
    const answer = await world.post('evaluations', body, { token: world.token({}) })
    expect(decisions(answer)).toEqual([true, false])
    expect(answer.body.evaluations[1].context.error.status).toBe(403)
  })
})
