/** Stored models whose conditions make instants of numbers are named, and no others. */
import { expect, test } from 'vitest'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { nameNumberInstants } from '../../../../pdp/server/runtime/number-instants.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'

const logInto = (lines: unknown[]) =>
  createLog({
    service: 'test',
    level: 'info',
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  })

async function named(condition: string): Promise<unknown[]> {
  const store = memoryStore({ clock: () => 0 })
  const modelOf = (type: string) => `model
  schema 1.1
type user
type ${type}
  relations
    define viewer: [user with c]
condition c${condition}
`
  const manifests = ['shop', 'shop2'].map((app) => ({
    app,
    audiences: [],
    permissions: {},
    roles: {},
    model: modelOf(`in_${app}`),
  }))
  await store.write(
    ENVIRONMENT,
    manifests.map((manifest) => ({ kind: 'manifest', manifest })),
    { context: { actor: 'test', requestId: '1' } },
  )
  const lines: unknown[] = []
  await nameNumberInstants({ store, log: logInto(lines) })
  return lines
}

test.each([
  '(now: timestamp, nbf: int) {\n  now >= timestamp(nbf)\n}',
  '(now: timestamp) {\n  !(now < timestamp(1893456000))\n}',
  '(now: timestamp, s: string) {\n  now >= timestamp(int(s) * 1000)\n}',
  '(now: timestamp, all: list<int>) {\n  all.exists(x, now >= timestamp(x))\n}',
  '(now: timestamp, m: map<int>) {\n  now >= timestamp(m.nbf)\n}',
])('names a model with the condition c%s', async (condition) => {
  expect(await named(condition)).toMatchObject([
    { event: 'condition_takes_seconds', app: 'shop', conditions: ['c'] },
    { event: 'condition_takes_seconds', app: 'shop2', conditions: ['c'] },
  ])
})

test.each([
  '(now: timestamp, s: string) {\n  now >= timestamp(s)\n}',
  '(now: timestamp) {\n  now >= timestamp("2026-01-31T12:00:00Z")\n}',
  '(now: timestamp, t: timestamp) {\n  now >= timestamp(t) + duration("1h")\n}',
  '(now: timestamp, t: timestamp) {\n  now >= timestamp(string(t))\n}',
])('says nothing of a model with the condition c%s', async (condition) => {
  expect(await named(condition)).toEqual([])
})
