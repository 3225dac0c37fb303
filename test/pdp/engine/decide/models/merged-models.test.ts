/** The models of several apps are one: naming a type of subjects takes nothing from the app that defines it. */
import { expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { given, put } from '../../../../support/tuples.ts'

const model = (...lines: readonly string[]): string => ['model', '  schema 1.1', 'type user', ...lines, ''].join('\n')
const FILES = model(
  'type group',
  '  relations',
  '    define member: [user, group#member]',
  'type file',
  '  relations',
  '    define owner: [group#member]',
)
const ZOO = model(
  'type group',
  'type organization',
  'type cage',
  '  relations',
  '    define keeper: [user, group, organization]',
)

test.each([
  ['before', 'a-zoo'],
  ['after', 'zoo'],
])('an app that comes %s it in the list of apps', async (_, app) => {
  const store = memoryStore()
  const pdp = createPdp({ store })
  await given(store, 'acme', put('group:g#member@user:ann'), put('file:1#owner@group:g#member'))
  await given(store, 'acme', put('organization:acme#partner@user:ann'))
  const answers = () =>
    Promise.all([
      pdp.can('acme', user('ann'), 'member', 'group:g'),
      pdp.can('acme', user('ann'), 'owner', 'file:1'),
      pdp.can('acme', user('ann'), 'partner', 'organization:acme'),
      pdp.can('acme', user('bob'), 'member', 'group:g'),
    ])
  const declare = (name: string, text: string) =>
    given(store, ENVIRONMENT, {
      kind: 'manifest',
      manifest: { app: name, audiences: [], permissions: {}, roles: {}, model: text },
    })
  await declare('files', FILES)
  expect(await answers()).toEqual([true, true, true, false])
  await declare(app, ZOO)
  expect(await answers()).toEqual([true, true, true, false])
})
