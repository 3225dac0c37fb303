/** A receiver that names another's stream is answered as about a stream that nobody has, and learns nothing of other subjects. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SSF_PATHS } from '../../../../pdp/signals/transmitter/configuration.ts'
import { inlined } from '../../server/serve/foreign-world.ts'
import type { Json } from '../../server/serve/harness.ts'
import { openSignals, POLL, type SignalWorld } from './world.ts'

let world: SignalWorld
let description: Json
let theirs = ''
let own = ''
let stranger = ''
beforeAll(async () => {
  world = await openSignals()
  description = (await world.send('GET', '/openapi.json')).body
  const receiver = await world.client('of-acme', { organization: 'acme' })
  theirs = (await world.stream(receiver)).stream_id
  stranger = await world.client('of-beta', { organization: 'beta' })
  own = (await world.stream(stranger)).stream_id
})
afterAll(() => world.close())

/** What each member of a body is, beside the stream's id. */
const MEMBERS: { readonly [name: string]: unknown } = {
  status: 'paused',
  reason: 'because',
  subject: { format: 'iss_sub', iss: 'https://id.example.test', sub: 'alice' },
  verified: true,
  state: 'state',
  delivery: { method: POLL },
  events_requested: [],
  description: 'description',
  subject_format: 'iss_sub',
  maxEvents: 1,
  returnImmediately: true,
  ack: ['one'],
  setErrs: { one: { err: 'invalid_key' } },
}

type Call = { readonly method: string; readonly path: string; readonly body: object | null }
/** Every call of the description below /ssf that names a stream. */
function calls(id: string): readonly Call[] {
  return Object.entries<Json>(description.paths)
    .filter(([path]) => path.startsWith('/ssf/'))
    .flatMap(([path, methods]) =>
      Object.entries<Json>(methods).flatMap(([method, operation]) => {
        const inQuery = operation.parameters?.some(({ in: where }: Json) => where === 'query')
        const schema = inlined(description, operation.requestBody?.content['application/json'].schema)
        const names = Object.keys(schema?.properties ?? {})
        if (!inQuery && !path.includes('{stream_id}') && !names.includes('stream_id')) return []
        const url = path.replace('{stream_id}', id) + (inQuery ? `?stream_id=${id}` : '')
        const body = Object.fromEntries(names.map((name) => [name, name === 'stream_id' ? id : MEMBERS[name]]))
        return [{ method: method.toUpperCase(), path: url, body: schema === undefined ? null : body }]
      }),
    )
}

async function told({ method, path, body }: Call, names: readonly string[]) {
  const answer = await fetch(world.url + path, {
    method,
    headers: { authorization: `Bearer ${stranger}`, ...(body === null ? {} : { 'content-type': 'application/json' }) },
    body: body === null ? null : JSON.stringify(body),
  })
  const text = await answer.text()
  const hidden = names.reduce((shown, name) => shown.replaceAll(name, '…'), text)
  const headers = [...answer.headers].filter(([name]) => !['date', 'x-request-id', 'content-length'].includes(name))
  return {
    call: [method, path.replace(/[^/=]+$/, '…')],
    status: answer.status,
    headers,
    text: hidden.replace(/"request_id":"[^"]*"/, ''),
  }
}

test('every call about a stream of another tenant’s is answered like one about nobody’s', async () => {
  const paths = new Set(calls('x').map(({ path }) => path.replace(/[?].*|\/x$/, '')))
  const { metadata: _, ...all } = SSF_PATHS
  expect(paths).toEqual(new Set(Object.values(all)))
  const nobodys = 'nobodys'
  const others = calls(nobodys)
  for (const [i, call] of calls(theirs).entries()) {
    const answer = await told(call, [theirs])
    expect(answer).toEqual(await told(others[i] ?? call, [nobodys]))
    expect([answer.call, answer.status]).toEqual([answer.call, 404])
  }
})

test.each([SSF_PATHS.addSubject, SSF_PATHS.removeSubject])(
  'POST %s says nothing about whether the subject is anybody',
  async (path) => {
    const bodies = ['alice', 'nobody'].flatMap((name) =>
      [
        { format: 'iss_sub', iss: 'https://id.example.test', sub: name },
        { format: 'email', email: `${name}@acme.test` },
        { format: 'opaque', id: name },
        {
          format: 'complex',
          user: { format: 'iss_sub', iss: 'https://id.example.test', sub: name },
          tenant: { format: 'opaque', id: 'acme' },
        },
      ].map((subject) => ({ stream_id: own, subject })),
    )
    const half = bodies.length / 2
    for (const [i, body] of bodies.slice(0, half).entries()) {
      const [about, other] = [body, bodies[i + half] ?? body]
      const answers = [
        await told({ method: 'POST', path, body: about }, ['alice']),
        await told({ method: 'POST', path, body: other }, ['nobody']),
      ]
      expect(answers[0]).toEqual(answers[1])
    }
  },
)
