/** AuthZEN questions that name what another tenant has: answered like names that nobody has. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AUTHZEN_PATHS } from '../../../../../pdp/server/serve/authzen/route.ts'
import { type ForeignWorld, NOBODYS, openForeign, THEIRS, toldOver } from '../foreign-world.ts'

let world: ForeignWorld
beforeAll(async () => {
  world = await openForeign()
})
afterAll(() => world.close())

const OWN = {
  subject: { type: 'user', id: 'dora' },
  action: { name: 'viewer' },
  resource: { type: 'invoice', id: 'own' },
}
const RESOURCES = [
  { type: 'invoice', id: '{number}' },
  { type: 'group', id: '{group}' },
  { type: 'organization', id: '{organization}' },
  { type: 'user', id: '{user}' },
  { type: 'entitlement', id: '{entitlement}' },
]
/** Questions about themselves that persons and services ask, and that name another tenant. */
const PARTS: readonly object[] = [
  ...RESOURCES.flatMap((resource) => [
    { resource },
    { resource, action: { name: 'use' } },
    { resource, action: { name: 'member' } },
  ]),
  { subject: { type: 'group', id: '{group}' } },
  { subject: { type: 'invoice', id: '{number}' } },
  { context: { organization: '{organization}' } },
  { context: { user: '{user}' } },
]
/** In a search, the answer says whether there is anybody to search for: ids are told to all who may ask about others. */
const PEOPLE: readonly object[] = [
  { subject: { type: 'user', id: '{user}' } },
  { subject: { type: 'service', id: '{client}' } },
  { subject: { type: 'identity', id: '{user}' } },
]
const PATHS = Object.values(AUTHZEN_PATHS).filter((path) => path.startsWith('/access/'))

async function expectAlike(path: string, part: object, token: string): Promise<number> {
  const { evaluations } = AUTHZEN_PATHS
  const body = path === evaluations ? { ...OWN, evaluations: [part, {}] } : { ...OWN, ...part }
  const call = { path, body, token }
  const [theirs, nobodys] = [await toldOver(world, THEIRS, call), await toldOver(world, NOBODYS, call)]
  expect([path, body, theirs]).toEqual([path, body, nobodys])
  return theirs.status
}

test('has a question for each of its paths', () => expect(PATHS).toHaveLength(5))

test.each(PATHS)(
  'POST %s says no more about another tenant than about nobody, to its clients and people',
  async (path) => {
    for (const part of path.includes('search') ? PARTS : [...PARTS, ...PEOPLE])
      for (const token of [world.stranger, world.person])
        expect([200, 403]).toContain(await expectAlike(path, part, token))
  },
)
