/** Questions, lists and comparisons of one tenant that name what another has: answered like names that nobody has. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type ForeignWorld,
  inlined,
  type Names,
  NOBODYS,
  openForeign,
  type Sent,
  THEIRS,
  toldOver,
} from '../foreign-world.ts'
import type { Json } from '../harness.ts'

let world: ForeignWorld
let schemas: { readonly [path: string]: Json }
beforeAll(async () => {
  world = await openForeign()
  const { body } = await world.send('GET', '/openapi.json')
  schemas = Object.fromEntries(
    Object.keys(QUESTIONS).map((path) => [
      path,
      inlined(body, body.paths[path].post.requestBody.content['application/json'].schema),
    ]),
  )
})
afterAll(() => world.close())

const TUPLE = { object: 'invoice:own', relation: 'viewer', subject: 'user:dora' }
/** Each call about decisions, with a question about what the caller has. */
const QUESTIONS: { readonly [path: string]: Json } = {
  '/oauth/decisions': { permissions: [{ relation: 'viewer', resource: 'invoice:own' }], entitlements: ['feature.own'] },
  '/v1/organizations/{org}/list-resources': {
    subject: { type: 'user', id: 'dora' },
    relation: 'viewer',
    type: 'invoice',
  },
  '/v1/organizations/{org}/list-subjects': { resource: 'invoice:own', relation: 'viewer', type: 'user' },
  '/v1/organizations/{org}/compare': { relation: 'viewer', type: 'invoice', contextual_tuples: [TUPLE] },
}

const RESOURCES = ['{invoice}', 'group:{group}', 'organization:{organization}', 'user:{user}']
const SUBJECTS = ['user:{user}', 'service:{client}', 'group:{group}#member', 'organization:{organization}#member']
const TUPLES = [
  ...RESOURCES.map((object) => ({ ...TUPLE, object, relation: 'parent' })),
  ...SUBJECTS.map((subject) => ({ ...TUPLE, subject })),
  { ...TUPLE, subject: 'group:{group}#member', object: '{invoice}' },
  { object: 'group:own', relation: 'member', subject: 'group:{group}#member' },
  { object: 'organization:beta', relation: 'invoices:approve', subject: 'user:{user}' },
]
/** What each text of a question may name of another tenant. Empty: names that belong to the environment, or to no one. */
const NAMED: { readonly [text: string]: readonly object[] } = {
  'permissions.relation': [],
  'permissions.resource': RESOURCES.map((resource) => ({ permissions: [{ relation: 'viewer', resource }] })),
  entitlements: [{ entitlements: ['{entitlement}'] }],
  // A question about a person or client says whether there is one (SECURITY.md).
  subject: [
    ...['group:{group}', 'group:{group}#member', 'organization:{organization}', 'invoice:{user}'],
    { type: 'group', id: '{group}' },
    { type: 'organization', id: '{organization}' },
    { type: 'invoice', id: '{user}' },
    { type: 'group', id: '{group}', relation: 'member' },
    { type: 'organization', id: '{organization}', relation: 'member' },
  ].map((subject) => ({ subject })),
  contextual_tuples: [{ contextual_tuples: ['{invoice}#viewer@group:{group}#member'] }],
  without_tuples: [{ without_tuples: ['{invoice}#viewer@user:{user}'] }],
  'contextual_tuples.object': TUPLES.map((tuple) => ({ contextual_tuples: [tuple] })),
  'contextual_tuples.relation': [],
  'contextual_tuples.subject': [],
  'contextual_tuples.condition.name': [],
  'without_tuples.object': TUPLES.map((tuple) => ({ without_tuples: [tuple] })),
  'without_tuples.relation': [],
  'without_tuples.subject': [],
  'without_tuples.condition.name': [],
  resource: RESOURCES.map((resource) => ({ resource })),
  relation: [
    { relation: 'member', type: 'group' },
    { relation: 'invoices:approve', type: 'organization' },
  ],
  type: [],
  subject_type: [],
  subject_relation: [{ resource: '{invoice}', type: 'group', subject_relation: 'member' }],
  app: [{ app: 'billing', relation: 'invoices:approve' }],
  'model.app': [],
  'model.text': [],
  as_of: [],
  // A place in the order of the caller's own resources.
  after: [],
  actors: [{ subject: { type: 'invoice', id: 'own' }, actors: ['{client}'] }],
  scopes: [],
}

/** Each replay of the past gives its revisions other random ids. */
async function told(call: Sent & { readonly body: Json }, names: Names) {
  const { status, text, headers } = await toldOver(world, names, call)
  if (call.body.as_of === undefined) return { status, text, headers }
  const others = headers.filter(([name]) => name !== 'portcullis-revision')
  return { status, text: text.replace(/"revision":"[^"]*"/, ''), headers: others }
}

/** The texts that a body may hold, by the members that lead to them. */
function textsIn(schema: Json, at = ''): readonly string[] {
  if ([schema.type].flat().includes('string') || schema.enum !== undefined) return [at]
  if (schema.items !== undefined) return textsIn(schema.items, at)
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((part: Json) => textsIn(part, at))
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    textsIn(member, at === '' ? name : `${at}.${name}`),
  )
  return [...new Set([...parts, ...members])]
}

/** As it is asked, with its reasons, and about a moment ago. */
const variantsOf = (path: string, question: Json): readonly Json[] => {
  const known = Object.keys(schemas[path].properties)
  const variants = [{}, { explain: true }, { as_of: new Date(Date.now() - 1).toISOString() }]
  return variants
    .filter((more) => Object.keys(more).every((name) => known.includes(name)))
    .map((more) => ({ ...question, ...more }))
}

test.each(Object.entries(QUESTIONS))(
  'POST %s says no more about another tenant than about nobody',
  async (path, own) => {
    const texts = textsIn(schemas[path])
    expect(texts.length).toBeGreaterThan(4)
    expect(texts.filter((text) => !(text in NAMED))).toEqual([])
    const known = Object.keys(schemas[path].properties)
    for (const part of texts.flatMap((text) => NAMED[text] ?? [])) {
      if (Object.keys(part).some((name) => !known.includes(name))) continue
      for (const body of variantsOf(path, { ...own, ...part })) {
        const call = { path: path.replace('{org}', 'beta'), body, token: world.stranger }
        const [theirs, nobodys] = [await told(call, THEIRS), await told(call, NOBODYS)]
        expect([body, theirs]).toEqual([body, nobodys])
        expect([body, theirs.status]).toEqual([body, 200])
      }
    }
  },
)

test.each(Object.keys(QUESTIONS).filter((path) => path.includes('{org}')))(
  'POST %s of another tenant is refused like one that nobody has',
  async (path) => {
    const call = { path: path.replace('{org}', '{organization}'), body: QUESTIONS[path], token: world.stranger }
    const theirs = await toldOver(world, THEIRS, call)
    expect(theirs).toEqual(await toldOver(world, NOBODYS, call))
    expect(theirs.status).toBe(403)
  },
)
