/** What callers without a compiler get wrong: each method, each argument, each kind of value. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'

let pdp: EmbeddedPdp
beforeAll(async () => {
  pdp = createPdp({ store: memoryStore() })
  await pdp.putOrganization('acme', { name: 'Acme' })
  await pdp.putManifest('shop', {
    model: 'model\n  schema 1.1\ntype user\ntype memo\n  relations\n    define reader: [user]\n',
  })
  await pdp.write('acme', { write: ['memo:1#reader@user:ann'] })
})
afterAll(() => pdp.close())

const ann = user('ann')
const check = { relation: 'reader', resource: 'memo:1' }
const grant = { app: 'shop', role: 'clerk', subject: 'user:ann' }
const by = { actor: 'user:ann', requestId: 'r-1' }
/** Good calls: the test puts other values into their places. */
const CALLS = {
  can: ['acme', ann, 'reader', 'memo:1', { context: {} }],
  decide: [{ organization: 'acme', subject: ann, permissions: [check], entitlements: ['feature.x'], context: {} }],
  entitlement: ['acme', 'feature.x'],
  isRevoked: [{ revocationKeys: [], issuedAtMs: 0 }],
  held: [{ organization: 'acme', subject: ann, app: null }],
  claimsEntitlements: ['acme'],
  ancestors: ['acme'],
  relations: ['acme', 'memo'],
  listResources: [{ organization: 'acme', subject: ann, relation: 'reader', type: 'memo' }],
  listSubjects: [{ organization: 'acme', resource: 'memo:1', relation: 'reader', type: 'user' }],
  write: ['acme', { write: ['memo:2#reader@user:ann'] }, { ...by, if: [] }],
  putManifest: ['other', { permissions: {} }, by],
  putOrganization: ['acme', { name: 'Acme', parent: null }, by],
  deleteOrganization: ['nobody', by],
  putMember: ['acme', 'ann', { role: 'admin', status: 'active' }, by],
  deleteMember: ['acme', 'nobody', by],
  putEntitlement: ['acme', 'feature.x', { enabled: true }, { ...by, enforcement: 'DecisionApi' }],
  deleteEntitlement: ['acme', 'feature.y', by],
  grantRole: ['acme', grant, by],
  revokeRole: ['acme', grant, by],
} as const satisfies { readonly [method in keyof EmbeddedPdp]?: readonly unknown[] }
const VALUES: readonly unknown[] = [
  undefined,
  null,
  '',
  'a b',
  '\u0000',
  7,
  Number.NaN,
  true,
  [],
  [null],
  {},
  { a: 1 },
  Symbol('s'),
  () => 1,
  10n,
]

type Place = readonly (string | number)[]
function places(value: unknown, at: Place = []): readonly Place[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const keys = inner.flatMap(([key, item]) => places(item, [...at, Array.isArray(value) ? Number(key) : key]))
  return [...(at.length === 0 ? [] : [at]), ...keys]
}
function withValue(value: unknown, [key, ...rest]: Place, put: unknown): unknown {
  if (key === undefined) return put
  if (Array.isArray(value)) return value.map((item, i) => (i === key ? withValue(item, rest, put) : item))
  const map = { ...(value as { [name: string]: unknown }) }
  return { ...map, [key]: withValue(map[key], rest, put) }
}

async function outcome(method: keyof typeof CALLS, words: unknown): Promise<unknown> {
  const call = pdp[method] as (...words: readonly unknown[]) => Promise<unknown>
  try {
    return await call(...(words as readonly unknown[]))
  } catch (err) {
    return err
  }
}

test.each(Object.keys(CALLS) as (keyof typeof CALLS)[])(
  '%s answers, or throws a PdpError that names the place',
  async (method) => {
    const words = CALLS[method]
    const unclear: unknown[] = []
    for (const place of places(words))
      for (const value of VALUES) {
        const found = await outcome(method, withValue(words, place, value))
        const clear =
          !(found instanceof Error) || (found instanceof PdpError && found.message !== 'nothing was written')
        if (!clear) unclear.push([place.join('/'), String(value), String(found)])
      }
    expect(unclear).toEqual([])
  },
)

test.each<[keyof typeof CALLS, Place, unknown]>([
  ['can', [1], 'user:ann'],
  ['can', [0], 7],
  ['putOrganization', [1], { nam: 'Acme' }],
  ['putOrganization', [1], { name: '' }],
  ['putOrganization', [1], { name: 'Acme', parnt: 'x' }],
  ['putMember', [2], { role: 'admin', stat: 'active' }],
  ['putMember', [1], 7],
  ['putEntitlement', [1], 'Not A Key'],
  ['putEntitlement', [3, 'enforcement'], 'Nobody'],
  ['grantRole', [1], { app: 'shop', role: 'clerk', user: 'ann' }],
  ['decide', [0, 'permissions'], 'memo:1'],
  ['write', [2], { iff: [] }],
  ['putManifest', [2, 'actor'], 7],
])('%s refuses what is wrong at %j', async (method, place, value) => {
  expect(await outcome(method, withValue(CALLS[method], place, value))).toBeInstanceOf(PdpError)
})

test('says in the message what is wrong, and where', async () => {
  await expect(pdp.write('acme', { write: ['memo:1', 'memo:2'] })).rejects.toThrow(
    /^nothing was written: \/write\/0 "memo:1" is not a tuple .* \(and 1 more\)$/,
  )
})
