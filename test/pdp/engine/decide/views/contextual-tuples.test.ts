/** Tuples that come with a question: they count in it as if they were stored, and nowhere else. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp } from '../../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import type { Manifest } from '../../../../../pdp/shared/domain/manifest.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import type { Tuple } from '../../../../../pdp/shared/domain/tuple.ts'
import { type Edit, plantSource } from '../../../../consistency/mistakes.ts'
import { LONG } from '../../../../support/effort.ts'
import { remoteMemoryStore } from '../../../../support/stores.ts'
import { given, grant, member, put, tuple } from '../../../../support/tuples.ts'

const MANIFEST: Manifest = {
  app: 'docs',
  audiences: [],
  permissions: { 'docs:read': 'Read' },
  roles: { reader: { name: 'Reader', permissions: ['docs:read'] } },
  model: `model
  schema 1.1
type folder
  relations
    define viewer: [user, user:*, group#member, folder#viewer]
type doc
  relations
    define parent: [folder]
    define blocked: [user, group#member]
    define editor: [user]
    define viewer: ([user, user:*, group#member, folder#viewer] or editor or viewer from parent) but not blocked
`,
}
const STORED = ['doc:1#parent@folder:f', 'folder:f#viewer@group:g#member', 'group:g#member@group:h#member']
/** Whatever may come with a question, or be stored. */
const OPTIONAL = [
  'doc:1#viewer@user:a',
  'doc:1#viewer@user:*',
  'doc:1#viewer@group:h#member',
  'doc:1#blocked@user:a',
  'doc:1#blocked@group:k#member',
  'doc:1#editor@user:a',
  'doc:2#parent@folder:f',
  'doc:2#parent@folder:g',
  'folder:g#viewer@folder:f#viewer',
  'folder:f#viewer@folder:g#viewer',
  'group:h#member@user:a',
  'group:k#member@group:h#member',
  'group:h#member@group:k#member',
  'group:k#member@user:a',
]
const ASKED = [user('a'), user('b'), { type: 'group', id: 'h', relation: 'member' }, { type: 'user', id: '*' }]
const CHECKS = ['doc:1', 'doc:2', 'folder:f', 'folder:g'].map((resource) => ({ relation: 'viewer', resource }))
const tuplesOf = (texts: readonly string[]): readonly Tuple[] => texts.map((text) => tuple(text))

async function opened(open: () => Store, texts: readonly string[]): Promise<Store> {
  const store = open()
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest: MANIFEST })
  await given(store, 'acme', ...[...STORED, ...texts].map((text) => put(text)))
  await given(store, 'acme', grant('1', 'reader', 'group:g', 'docs'), member('sue', 'member', 'suspended'))
  return store
}

/** Everything that can be asked, with or without reasons, of both kinds of lists as well. */
async function answers(pdp: Pdp, contextualTuples: readonly Tuple[]): Promise<string> {
  const found: unknown[] = []
  for (const subject of ASKED) {
    const common = { organization: 'acme', contextualTuples }
    for (const explain of [false, true]) {
      const { permissions } = await pdp.decide({ ...common, subject, permissions: CHECKS, explain })
      found.push(permissions.map(({ reason, ...rest }) => ({ ...rest, found: reason?.path.length })))
    }
    found.push((await pdp.listResources({ ...common, subject, relation: 'viewer', type: 'doc' })).items)
  }
  for (const resource of ['doc:1', 'doc:2']) {
    const common = { organization: 'acme', resource, relation: 'viewer', contextualTuples }
    found.push((await pdp.listSubjects({ ...common, type: 'user' })).items)
    for (const [type, subjectRelation] of [
      ['group', 'member'],
      ['folder', 'viewer'],
    ] as const)
      found.push((await pdp.listSubjects({ ...common, type, subjectRelation })).items)
  }
  return JSON.stringify(found)
}

const stores: Record<string, () => Store> = { 'near memory': memoryStore, 'far memory': remoteMemoryStore }
describe.each(Object.entries(stores))('in %s', (_, open) => {
  test('they count exactly as if they were stored, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.subarray(OPTIONAL), fc.subarray(OPTIONAL), async (stored, coming) => {
        const pdp = createPdp({ store: await opened(open, stored) })
        const both = createPdp({ store: await opened(open, [...new Set([...stored, ...coming])]) })
        const before = await answers(pdp, [])
        expect(await answers(pdp, tuplesOf(coming))).toBe(await answers(both, []))
        expect(await answers(pdp, [])).toBe(before)
      }),
      { numRuns: 40 },
    )
  })

  describe('a question', () => {
    let pdp: Pdp
    beforeAll(async () => {
      pdp = createPdp({ store: await opened(open, []) })
    })
    const decide = (texts: readonly string[], subject = user('a'), relation = 'viewer', resource = 'doc:1') => {
      const contextualTuples = texts.map((text) => {
        const [object = '', rest = ''] = text.split('#', 1).concat(text.slice(text.indexOf('#') + 1))
        const at = rest.indexOf('@')
        return { object, relation: rest.slice(0, at), subject: rest.slice(at + 1) }
      })
      return pdp.decide({ organization: 'acme', subject, permissions: [{ relation, resource }], contextualTuples })
    }

    test('gains no role and no permission by them', async () => {
      const inGroup = ['group:g#member@user:a']
      const allowed = async (...of: Parameters<typeof decide>) => (await decide(...of)).permissions[0]?.allowed
      expect(await allowed(inGroup, user('a'), 'viewer', 'folder:f')).toBe(true)
      expect(await allowed(inGroup, user('a'), 'docs:read', 'app:docs')).toBe(false)
      expect(await allowed(inGroup, user('a'), 'docs:read', 'organization:acme')).toBe(false)
    })

    test('gains nothing by them while the membership is suspended', async () => {
      const { permissions } = await decide(['doc:1#viewer@user:sue'], user('sue'))
      expect(permissions).toMatchObject([{ allowed: false, reasonCode: 'membership_suspended' }])
    })

    test.each<[string, readonly string[], number]>([
      ['names a membership', ['organization:acme#admin@user:a'], 0],
      ['names a membership elsewhere', ['doc:1#editor@user:a', 'organization:other#member@user:a'], 1],
      ['names a right on an app', ['app:docs#docs-read@user:a'], 0],
      ['is of a relation that the model does not know', ['doc:1#owner@user:a'], 0],
      ['is of a kind that the model does not allow', ['doc:1#parent@folder:f', 'doc:1#editor@user:*'], 1],
      ['names a subject that the model does not allow', ['doc:1#editor@group:g#member'], 0],
      ['is written twice', ['doc:1#editor@user:a', 'doc:1#editor@user:a'], 1],
      ['has no id', ['doc:#editor@user:a'], 0],
      ['has white space', ['doc:1#editor@user:a b'], 0],
    ])('is refused with a tuple that %s', async (_, texts, at) => {
      await expect(decide(texts)).rejects.toMatchObject({
        code: 'request_invalid',
        issues: [expect.objectContaining({ place: `/contextualTuples/${at}` })],
      })
    })

    test('is refused with more than a hundred', async () => {
      const texts = Array.from({ length: 101 }, (_, i) => `doc:1#editor@user:u${i}`)
      await expect(decide(texts)).rejects.toMatchObject({ issues: [{ place: '/contextualTuples' }] })
      expect((await decide(texts.slice(1))).permissions).toHaveLength(1)
    })
  })
})

// A test of this test.
describe.runIf(LONG)('a planted fault', () => {
  const edits = (...pairs: readonly (readonly [string, string])[]): readonly Edit[] =>
    pairs.map(([find, replace]) => ({ file: 'engine/decide/views/contextual-tuples.ts', find, replace }))
  test.each<[string, readonly string[], readonly Edit[]]>([
    [
      'tuples of one question count in those after it',
      ['doc:2#viewer@user:b'],
      edits(
        ['export function relationViewOf(', 'const planted: ContextualTuple[] = []\nexport function relationViewOf('],
        [
          'if (model === null || (tuples.length === 0 && without.length === 0)) return undefined',
          'planted.push(...tuples)\n  if (model === null) return undefined',
        ],
        [
          'tuples.length === 0 ? rest : new ContextualView(rest, log, tuples)',
          'new ContextualView(rest, log, planted)',
        ],
      ),
    ],
    [
      'groups of a question get into the cached closure',
      ['group:k#member@group:h#member'],
      edits([
        'groups.add(group)\n          from.add(group)',
        'groups.add(group)\n          from.add(group);(stored?.groups as Set<string> | undefined)?.add(group)',
      ]),
    ],
  ])('is found out: %s', async (fault, coming, planted) => {
    const root = pathToFileURL(`${join(plantSource(`contextual ${fault}`, planted), 'pdp')}/`).href
    const source: { createPdp: typeof createPdp } = await import(`${root}engine/decision-point/create-pdp.ts`)
    const store = await opened(remoteMemoryStore, ['group:h#member@user:a', 'doc:1#blocked@group:k#member'])
    const pdp = source.createPdp({ store })
    const before = await answers(pdp, [])
    expect(before).toBe(await answers(createPdp({ store }), []))
    await answers(pdp, tuplesOf(coming))
    expect(await answers(pdp, [])).not.toBe(before)
  })
})
