/** Store files with conditions: what `portcullis-pdp model test` runs, and what it refuses and where. */
import { describe, expect, test } from 'vitest'
import { runStores } from './stores.ts'

const MODEL = `model: |
  model
    schema 1.1
  type user
  type doc
    relations
      define owner: [user]
      define viewer: [user] or owner
`
const CHECK = `tests:
  - check:
      - user: user:anne
        object: doc:1
        assertions: {viewer: true}
`

describe('model test', () => {
  const condition = `${MODEL.replace('define owner: [user]', 'define owner: [user with on_duty]')}  condition on_duty(x: int) {
    x > 1
  }
`
  test('evaluates conditions with the context of each assertion, and says what one lacks', async () => {
    const tuples = 'tuples:\n  - {user: user:anne, relation: owner, object: doc:1, condition: {name: on_duty}}\n'
    const tests = `tests:
  - check:
      - {user: user:anne, object: doc:1, context: {x: 2}, assertions: {viewer: true}}
      - {user: user:anne, object: doc:1, context: {x: 1}, assertions: {viewer: false}}
      - {user: user:anne, object: doc:1, assertions: {viewer: false}}
    list_objects:
      - {user: user:anne, type: doc, context: {x: 2}, assertions: {viewer: [doc:1]}}
    list_users:
      - {object: doc:1, user_filter: [{type: user}], context: {x: '2'}, assertions: {viewer: {users: [user:anne]}}}
`
    const { status, lines } = await runStores({ 'a.fga.yaml': `${condition}${tuples}${tests}` })
    expect([status, lines.at(-1)]).toEqual([1, '4 passed, 1 failed'])
    expect(lines[0]).toContain('doc:1#owner@user:anne: condition "on_duty" needs "x" in the context of the question')
  })

  test.each([
    [
      'a condition that cannot be true or false',
      `${condition.replace('x > 1', 'x + 1')}${CHECK}`,
      'a.fga.yaml:9:3: condition "on_duty" gives int, and must give bool',
    ],
    [
      'a condition that is not defined',
      `${MODEL.replace('[user] or', '[user with off_duty] or')}${CHECK}`,
      'there is no condition "off_duty"',
    ],
    [
      'a context that does not fit',
      `${condition}tuples:\n  - {user: user:anne, relation: owner, object: doc:1, condition: {name: on_duty, context: {x: soon}}}\n`,
      'x is not a whole number (int)',
    ],
    [
      'a context with a parameter that the condition does not have',
      `${condition}tuples:\n  - {user: user:anne, relation: owner, object: doc:1, condition: {name: on_duty, context: {y: 1}}}\n`,
      'condition "on_duty" has no parameter "y"',
    ],
    [
      'a tuple without the condition that it needs',
      `${condition}tuples:\n  - {user: user:anne, relation: owner, object: doc:1}\n`,
      'does not allow user without a condition: it needs on_duty',
    ],
  ])('refuses %s, saying where', async (_, text, message) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': text })
    expect(lines.slice(0, -1).join('\n')).toContain(message)
    expect([status, lines.at(-1)]).toEqual([2, '0 passed, 0 failed, 1 of 1 files could not be used'])
  })
})
