/** Imports and exports of tuples, the audit trail, and announced entitlements. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager()
  for (const id of ['bulk', 'copy', 'bad', 'resume']) await put(`/v1/organizations/${id}`, { name: id })
})
afterAll(() => served.close())

const put = (path: string, body: object) => served.send('PUT', path, { token, body })
const lines = async (
  method: string,
  path: string,
  options: { body?: string; type?: string; accept?: string; as?: string } = {},
) => {
  const { body, type = 'application/x-ndjson', accept, as = token } = options
  const response = await fetch(`${served.url}/v1/organizations/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${as}`,
      ...(body === undefined ? {} : { 'content-type': type }),
      ...(accept && { accept }),
    },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  const parts = text.trimEnd().split('\n')
  return { status: response.status, type: response.headers.get('content-type'), lines: parts, text }
}
const imported = async (organization: string, body: string, query = '', as = token) => {
  const answer = await lines('POST', `${organization}/relationships:import${query}`, { body, as })
  return [answer.status, answer.lines.map((line): Json => JSON.parse(line))] as const
}
const many = (count: number, from = 1) => Array.from({ length: count }, (_, i) => `doc:${from + i}#viewer@user:alice`)
const stored = async (organization: string) =>
  (await served.store.tuples(organization, {}, { after: null, countMax: 100_000 })).length

describe('an import', () => {
  test('takes every way to write a tuple, and says how far it is after each 1,000 lines', async () => {
    const first = [
      'doc:a#viewer@user:alice',
      '"doc:b#viewer@group:x#member"',
      '{"object": "doc:c", "relation": "viewer", "subject": "service:web", "expires_at": "2030-01-01T00:00:00Z"}',
      'doc:d#viewer@user:bob 2031-02-03T04:05:06.789Z\r',
      '',
      '# a comment',
    ]
    const [status, progress] = await imported('bulk', [...first, ...many(2_500)].join('\n'))
    expect([status, progress]).toEqual([
      200,
      [
        { line: 1_000, tuples: 998, revision: 1 },
        { line: 2_000, tuples: 1_998, revision: 2 },
        { line: 2_506, tuples: 2_504, revision: 3 },
        { line: 2_506, tuples: 2_504, revision: 3, done: true },
      ],
    ])
    expect(await stored('bulk')).toBe(2_504)
  })

  test('is read back from an export, in either format', async () => {
    const json = await lines('GET', 'bulk/relationships:export')
    const text = await lines('GET', 'bulk/relationships:export', { accept: 'text/plain' })
    expect([json.type, text.type]).toEqual(['application/x-ndjson', 'text/plain; charset=utf-8'])
    expect([json.lines.length, text.lines.length]).toEqual([2_504, 2_504])
    expect(json.lines.slice(-1)).toEqual([
      JSON.stringify({
        object: 'doc:d',
        relation: 'viewer',
        subject: 'user:bob',
        expires_at: '2031-02-03T04:05:06.789Z',
      }),
    ])
    expect(text.lines.slice(-1)).toEqual(['doc:d#viewer@user:bob 2031-02-03T04:05:06.789Z'])
    await imported('copy', json.text)
    expect(await lines('GET', 'copy/relationships:export')).toEqual(json)
    // Again, from the other format: nothing changes.
    const [, progress] = await imported('copy', text.text)
    expect(progress.at(-1)).toMatchObject({ done: true, revision: 3 })
  })

  test('exports only what matches', async () => {
    const found = await lines('GET', 'bulk/relationships:export?object=doc:b')
    expect(found.lines).toEqual(['"doc:b#viewer@group:x#member"'])
    expect((await lines('GET', 'bulk/relationships:export?object=doc:nothing')).text).toBe('')
    expect((await lines('GET', 'bulk/relationships:export?objct=x')).status).toBe(400)
    expect((await lines('GET', 'bulk/relationships:export?object=x')).status).toBe(400)
  })

  test('takes the last of lines that name one tuple', async () => {
    await imported('copy', 'doc:twice#viewer@user:alice 2030-01-01T00:00:00Z\ndoc:twice#viewer@user:alice\n')
    const found = await lines('GET', 'copy/relationships:export?object=doc:twice')
    expect(found.lines).toEqual(['"doc:twice#viewer@user:alice"'])
  })

  test.each<[string, string]>([
    ['no tuple', 'hello'],
    ['no relation', 'doc:1@user:alice'],
    ['a wildcard as the object', 'doc:*#viewer@user:alice'],
    ['an object without a type', '1#viewer@user:alice'],
    ['a space that is not ASCII', 'doc:a\u00a0b#viewer@user:alice'],
    ['a tier', 'organization:bad#owner@user:alice'],
    ['too many words', 'doc:1#viewer@user:alice 2030-01-01T00:00:00Z x'],
    ['a date without a time', 'doc:1#viewer@user:alice 2030-01-01'],
    ['an instant that is none', 'doc:1#viewer@user:alice 2030-13-01T00:00:00Z'],
    [
      'a member that is there twice',
      '{"object": "doc:1", "object": "doc:2", "relation": "viewer", "subject": "user:a"}',
    ],
    ['half of an object', '{"object": "doc:1"'],
    ['an unknown member', '{"object": "doc:1", "relation": "viewer", "subject": "user:a", "x": 1}'],
    ['a number', '{"object": 1, "relation": "viewer", "subject": "user:a"}'],
    [
      'a day that no calendar has',
      '{"object": "doc:1", "relation": "viewer", "subject": "user:a", "expires_at": "2030-02-31T00:00:00Z"}',
    ],
    ['a number as the instant', '{"object": "doc:1", "relation": "viewer", "subject": "user:a", "expires_at": 1}'],
    ['a member of the prototype', '{"object": "doc:1", "relation": "viewer", "subject": "user:a", "__proto__": 1}'],
    ['a line that is too long', `doc:${'x'.repeat(5_000)}#viewer@user:alice`],
    ['bytes that are no UTF-8', 'doc:\ufffd#viewer@user:alice'],
    ['a NUL', 'doc:1\0#viewer@user:alice'],
  ])('is refused for %s, with the line, and stores nothing of it', async (_, line) => {
    const [status, [body]] = await imported('bad', `doc:1#viewer@user:alice\n${line}\ndoc:2#viewer@user:alice\n`)
    expect([status, body.code, body.errors]).toEqual([
      400,
      'request_invalid',
      [{ line: 2, detail: expect.any(String) }],
    ])
    expect(await stored('bad')).toBe(0)
  })

  test('names every wrong line of the first 1,000', async () => {
    const [, [body]] = await imported('bad', 'x\ndoc:1#viewer@user:a\ny\norganization:bad#member@user:a\n')
    expect(body.errors.map(({ line }: Json) => line)).toEqual([1, 3])
  })

  test('stops at a wrong line, says how far it came, and is resumed from there', async () => {
    const wrong = [...many(1_500), 'wrong', ...many(1_000, 1_501)]
    const [status, progress] = await imported('resume', wrong.join('\n'))
    expect([status, progress.length, progress[0], progress[1].line]).toEqual([
      200,
      2,
      { line: 1_000, tuples: 1_000, revision: 1 },
      1_000,
    ])
    expect(progress[1].problem).toMatchObject({ code: 'request_invalid', status: 400, errors: [{ line: 1_501 }] })
    expect(await stored('resume')).toBe(1_000)
    const right = wrong.toSpliced(1_500, 1, '# mended')
    const [, rest] = await imported('resume', right.join('\n'), '?after_line=1000')
    expect(rest.at(-1)).toEqual({ line: 2_501, tuples: 1_500, revision: 3, done: true })
    expect(await stored('resume')).toBe(2_500)
  })

  test('of nothing is done at once', async () => {
    expect(await imported('resume', '\n')).toEqual([
      200,
      [
        { line: 1, tuples: 0, revision: 3 },
        { line: 1, tuples: 0, revision: 3, done: true },
      ],
    ])
    const [, progress] = await imported('resume', 'x\ny\n', '?after_line=2')
    expect(progress.at(-1)).toMatchObject({ line: 2, tuples: 0, done: true })
  })

  test.each<[string, string, Parameters<typeof lines>[2], number]>([
    ['an unknown organization', 'nowhere/relationships:import', { body: 'x' }, 404],
    ['JSON', 'bad/relationships:import', { body: '{}', type: 'application/json' }, 415],
    ['YAML', 'bad/relationships:import', { body: 'x', type: 'application/yaml' }, 415],
    ['a line number that is none', 'bad/relationships:import?after_line=-1', { body: 'x' }, 400],
    ['an unknown query member', 'bad/relationships:import?from=1', { body: 'x' }, 400],
    ['no body', 'bad/relationships:import', {}, 415],
  ])('is refused for %s', async (_, path, options, status) => {
    expect((await lines('POST', path, options)).status).toBe(status)
  })

  test('needs the scope and the organization, before and while it runs', async () => {
    const reader = await served.manager({ client: 'reader', scopes: ['relationships:read'] })
    expect((await imported('bad', 'doc:1#viewer@user:a', '', reader))[0]).toBe(403)
    const bound = await served.manager({ client: 'bound', organization: 'acme' })
    expect((await imported('bad', 'doc:1#viewer@user:a', '', bound))[0]).toBe(403)
    expect((await lines('GET', 'bad/relationships:export', { as: bound })).status).toBe(403)

    const dying = await served.manager({ client: 'dying' })
    const end = Promise.withResolvers<string>()
    const options = { method: 'POST', headers: { authorization: `Bearer ${dying}`, 'content-type': 'text/plain' } }
    const sending = request(`${served.url}/v1/organizations/bad/relationships:import`, options, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
        if (!text.includes('"line":1000') || sending.writableEnded) return
        served.setState(dying, { active: false })
        sending.end(`${many(500, 1_001).join('\n')}\n`)
      })
      response.on('end', () => end.resolve(text))
    })
    sending.write(`${many(1_000).join('\n')}\n`)
    const [, last = ''] = (await end.promise).trimEnd().split('\n')
    expect(JSON.parse(last)).toMatchObject({ line: 1_000, problem: { code: 'token_invalid' } })
    expect(await stored('bad')).toBe(1_000)
  })
})

describe('the audit trail', () => {
  const changes = async (path: string, as = token) => (await served.send('GET', path, { token: as })).body

  test('says who changed what and when, after a revision', async () => {
    await put('/v1/organizations/trail', { name: 'Trail' })
    const headers = { 'x-request-id': 'request-12345' }
    const body = {
      write: [
        'doc:1#viewer@user:a',
        { object: 'doc:2', relation: 'viewer', subject: 'user:a', expires_at: '2030-01-01T00:00:00.000Z' },
      ],
    }
    await served.send('POST', '/v1/organizations/trail/relationships', { token, body, headers })
    await served.send('POST', '/v1/organizations/trail/relationships', {
      token,
      body: { delete: ['doc:1#viewer@user:a'] },
    })
    const all = await changes('/v1/organizations/trail/changes')
    expect(all).toMatchObject({ after: 2, more: false, gap: false })
    // Of a reader that knew more than a database which was restored.
    const ahead = await changes('/v1/organizations/trail/changes?after=9')
    expect(ahead).toEqual({ items: [], after: 2, more: false, gap: true })
    expect(all.items).toHaveLength(3)
    expect(all.items[1]).toEqual({
      revision: 1,
      change: {
        kind: 'tuple',
        op: 'write',
        tuple: { object: 'doc:2', relation: 'viewer', subject: 'user:a', expires_at: '2030-01-01T00:00:00.000Z' },
      },
      actor: 'service:admin',
      request_id: 'request-12345',
      at: expect.stringMatching(/^\d{4}-/),
    })
    expect((await changes('/v1/organizations/trail/changes?after=1')).items).toMatchObject([
      { revision: 2, change: { op: 'delete' } },
    ])
    expect(await changes('/v1/organizations/trail/changes?after=2')).toEqual({
      items: [],
      after: 2,
      more: false,
      gap: false,
    })
    expect((await changes('/v1/organizations/trail/changes?after=99')).items).toEqual([])
  })

  test('comes in parts that never cut a write in two', async () => {
    const first = await changes('/v1/organizations/bulk/changes')
    expect(first).toMatchObject({ after: 1, more: true })
    expect(first.items).toHaveLength(998)
    const second = await changes(`/v1/organizations/bulk/changes?after=${first.after}`)
    expect([second.after, second.items.length]).toEqual([2, 1_000])
  })

  test('has the environment and the directory too, for unbound clients', async () => {
    const kinds = (items: Json) => new Set(items.map(({ change }: Json) => change.kind))
    expect(kinds((await changes('/v1/changes')).items)).toEqual(new Set(['organization']))
    expect(kinds((await changes('/v1/changes?log=directory')).items)).toEqual(new Set(['user', 'client']))
    const bound = await served.manager({ client: 'bound-auditor', organization: 'trail', scopes: ['audit:read'] })
    expect(await changes('/v1/changes', bound)).toMatchObject({ code: 'permission_denied' })
    expect(await changes('/v1/organizations/bulk/changes', bound)).toMatchObject({ code: 'permission_denied' })
    expect((await changes('/v1/organizations/trail/changes', bound)).items).toHaveLength(3)
  })

  test.each(['?after=-1', '?after=x', '?after=1.5', '?log=tokens', '?before=1'])('refuses %s', async (query) => {
    expect(await changes(`/v1/changes${query}`)).toMatchObject({ code: 'request_invalid' })
  })
})

describe('entitlements:changed', () => {
  test('makes a new version, and the event that says so', async () => {
    await put('/v1/organizations/acme/entitlements/feature.a', { value: true })
    const path = '/v1/organizations/acme/entitlements:changed'
    const first = await served.send('POST', path, { token })
    const second = await served.send('POST', path, { token })
    expect([first.status, second.body.version - first.body.version]).toEqual([200, 1])
    const { body } = await served.send('GET', '/v1/organizations/acme/entitlements/feature.a', { token })
    expect(body).toMatchObject({ value: { enabled: true }, version: second.body.version })
  })

  test('needs scope and organization', async () => {
    const path = '/v1/organizations/acme/entitlements:changed'
    const reader = await served.manager({ client: 'reader-2', scopes: ['decisions:read'] })
    expect((await served.send('POST', path, { token: reader })).status).toBe(403)
    expect((await served.send('POST', '/v1/organizations/nowhere/entitlements:changed', { token })).status).toBe(404)
  })
})
