/** Who exists, as checks, lists, searches and comparisons see it: all of them the same people and clients. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { effort } from '../../../../support/effort.ts'
import { put } from '../../../../support/tuples.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let reader: string
const options = { context: CONTEXT }
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  reader = await served.manager({ client: 'reader', scopes: ['decisions:read'], organization: 'acme' })
})
afterAll(() => served.close())

async function post(path: string, body: Json, token = reader): Promise<Json> {
  const answer = await served.send('POST', path, { token, body })
  expect(answer.status).toBe(200)
  return answer.body
}
const allows = async (subject: Json, resource: string): Promise<boolean> =>
  (await post('/oauth/decisions', { subject, permissions: [{ relation: 'viewer', resource }] })).permissions[0].allowed
const listed = async (resource: string, type = 'user'): Promise<readonly string[]> => {
  const page = await post('/v1/organizations/acme/list-subjects', { resource, relation: 'viewer', type })
  expect(page).toMatchObject({ complete: true, next_page_token: null })
  return page.items
}
const searched = async (id: string, type = 'user'): Promise<readonly string[]> => {
  const resource = { type: 'doc', id }
  const found = await post('/access/v1/search/subject', { subject: { type }, action: { name: 'viewer' }, resource })
  return found.results.map((one: Json) => `${one.type}:${one.id}`)
}

describe('people and clients', () => {
  const people = Array.from({ length: 8 }, (_, i) => `p${i}`)
  const clients = Array.from({ length: 4 }, (_, i) => `c${i}`)
  const subjects = [...people.map((id) => `user:${id}`), ...clients.map((id) => `service:${id}`)]
  const ghosts = ['user:ghost', 'service:gone', 'user:c1', 'service:p1']

  beforeAll(async () => {
    for (const id of people)
      await served.directory.putUser({ id, email: null, emailVerified: false, name: id }, CONTEXT)
    for (const client of clients) await served.manager({ client, scopes: ['decisions:read'] })
    const named = [...subjects, ...ghosts]
    const tuples = named.flatMap((name, i) => [
      put(`doc:direct#viewer@${name}`),
      ...(i % 2 === 0 ? [put(`group:g#member@${name}`)] : []),
    ])
    await served.store.write('acme', [...tuples, put('doc:grouped#viewer@group:g#member')], options)
  })

  test('are listed, searched for and compared exactly where a check allows them, whoever is deleted', async () => {
    const left = [...subjects]
    let seed = 7
    for (let round = 0; round < effort({ short: 4, long: 11 }); round++) {
      for (const doc of ['direct', 'grouped']) {
        for (const type of ['user', 'service']) {
          const candidates = [...subjects, ...ghosts].filter((name) => name.startsWith(`${type}:`))
          const allowed: string[] = []
          for (const name of candidates)
            if (await allows({ type, id: name.slice(type.length + 1) }, `doc:${doc}`)) allowed.push(name)
          expect(await listed(`doc:${doc}`, type)).toEqual([...allowed].sort())
          expect(await searched(doc, type)).toEqual([...allowed].sort())
          const without_tuples = candidates.map((name) => {
            const [object, relation] = doc === 'direct' ? ['doc:direct', 'viewer'] : ['group:g', 'member']
            return { object, relation, subject: name }
          })
          const question = { relation: 'viewer', type: 'doc', subject_type: type, without_tuples }
          const found = await post('/v1/organizations/acme/compare', question)
          const loses = found.loses.filter(({ resource }: Json) => resource === `doc:${doc}`)
          expect(loses.map(({ subject }: Json) => subject)).toEqual([...allowed].sort())
          expect(found.complete).toBe(true)
        }
      }
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      const [gone = ''] = left.splice(seed % left.length, 1)
      const path = gone.startsWith('user:') ? `/v1/users/${gone.slice(5)}` : `/v1/clients/${gone.slice(8)}`
      const admin = await served.manager({ client: `admin${round}` })
      expect((await served.send('DELETE', path, { token: admin })).status).toBe(204)
    }
    expect(await listed('doc:direct')).not.toContain('user:ghost')
  })

  test('who do not exist gain nothing by a comparison', async () => {
    const contextual_tuples = [{ object: 'doc:new', relation: 'viewer', subject: 'user:ghost' }]
    const question = { relation: 'viewer', type: 'doc', contextual_tuples }
    expect(await post('/v1/organizations/acme/compare', question)).toMatchObject({ gains: [], gains_count: 0 })
  })
})

describe('a person of a trusted issuer', () => {
  const ann = { type: 'user', id: '~kc:ann' }
  const path = `/v1/trusted-issuers/${encodeURIComponent('https://kc.example')}`
  beforeAll(async () => {
    const admin = await served.manager({ client: 'issuer-admin' })
    const document = {
      ...{ jwks_uri: 'https://kc.example/keys', algorithms: ['ES256'], audience: 'https://api.example/' },
      ...{ subject_prefix: 'kc:', organizations: ['acme'] },
    }
    expect((await served.send('PUT', path, { token: admin, body: document })).status).toBe(201)
    const names = ['user:~kc:ann', 'user:~other:ann', 'user:~kc:', 'service:~kc:ann', 'user:~kcann']
    await served.store.write('acme', [...names.map((name) => put(`doc:theirs#viewer@${name}`))], options)
  })

  test('gets by a service the answer that their own token gets', async () => {
    const own = served.token({ subject: { type: 'user', id: '~kc:ann' }, organization: 'acme' })
    const question = { permissions: [{ relation: 'viewer', resource: 'doc:theirs' }] }
    expect((await post('/oauth/decisions', question, own)).permissions[0].allowed).toBe(true)
    expect(await allows(ann, 'doc:theirs')).toBe(true)
    const evaluation = { subject: ann, action: { name: 'viewer' }, resource: { type: 'doc', id: 'theirs' } }
    expect((await post('/access/v1/evaluation', evaluation)).decision).toBe(true)
    const resources = { ...evaluation, resource: { type: 'doc' } }
    expect((await post('/access/v1/search/resource', resources)).results).toEqual([{ type: 'doc', id: 'theirs' }])
    const actions = { subject: ann, resource: { type: 'doc', id: 'theirs' } }
    expect((await post('/access/v1/search/action', actions)).results).toEqual([])
    const list = { subject: ann, relation: 'viewer', type: 'doc' }
    expect((await post('/v1/organizations/acme/list-resources', list)).items).toEqual(['doc:theirs'])
    expect(await listed('doc:theirs')).toEqual(['user:~kc:ann'])
  })

  test.each([
    ['another issuer', { type: 'user', id: '~other:ann' }],
    ['no name', { type: 'user', id: '~kc:' }],
    ['a client', { type: 'service', id: '~kc:ann' }],
    ['a prefix that is not whole', { type: 'user', id: '~kcann' }],
  ])('is nobody with %s', async (_, subject) => {
    expect(await allows(subject, 'doc:theirs')).toBe(false)
  })

  test('is nobody where the issuer speaks for nobody, and once it is not trusted any more', async () => {
    expect(await served.directory.exists({ type: 'user', id: '~kc:ann' }, 'acme')).toBe(true)
    for (const organization of ['other', '', 'acm', 'acme x'])
      expect(await served.directory.exists({ type: 'user', id: '~kc:ann' }, organization)).toBe(false)
    const admin = await served.manager({ client: 'issuer-ender' })
    expect((await served.send('DELETE', path, { token: admin })).status).toBe(204)
    expect(await allows(ann, 'doc:theirs')).toBe(false)
    expect(await listed('doc:theirs')).toEqual([])
  })
})
