/** A circle with several "but not" inside: each thing that turns out to be false may decide the next one. */
import { expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { given, put } from '../../../support/tuples.ts'

/** `first` supports only itself; so `second` holds; so `third` supports only itself; so `fourth` holds, which leads back. */
const MODEL = `model
  schema 1.1
type user
type node
  relations
    define itself: [node]
    define all: [user]
    define first: [user] or again from itself
    define again: [user] or first from itself or back from itself
    define back: fourth and first
    define second: all but not first
    define open: all but not second
    define third: [user] or repeat from itself or open
    define repeat: [user] or third from itself
    define fourth: all but not third
`

test('is solved round by round, as long as something is decided', async () => {
  const store = memoryStore()
  const manifest = { app: 'rounds', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  await given(store, 'acme', put('node:1#itself@node:1'), put('node:1#all@user:ann'))
  const pdp = createPdp({ store })
  const can = (relation: string) => pdp.can('acme', user('ann'), relation, 'node:1')
  expect(await Promise.all(['first', 'second', 'open', 'third', 'fourth', 'back'].map(can))).toEqual([
    false,
    true,
    false,
    false,
    true,
    false,
  ])
})
