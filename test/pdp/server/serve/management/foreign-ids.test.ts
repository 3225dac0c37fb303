/** A client of one tenant learns nothing from the ids of another: what exists there is answered like what nobody has. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served, seedAcme, serve } from '../harness.ts'
import { seedWrites, sendWrite, WRITES, type WriteCall } from './writes.ts'

type Headers = { readonly [name: string]: string }
type Call = Omit<WriteCall, 'log' | 'method'> & { readonly method: string }

let served: Served
let stranger = ''
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  await seedWrites(served)
  const beta = { id: 'beta', name: 'Beta', parent: null }
  await served.store.write(ENVIRONMENT, [{ kind: 'organization', id: 'beta', organization: beta }], {
    context: CONTEXT,
  })
  stranger = await served.manager({ client: 'beta-admin', organization: 'beta' })
})
afterAll(() => served.close())

/** What each parameter of a path is of somebody else's; `id` and `key` are of the one or the other kind. */
const THEIRS: { readonly [name: string]: readonly string[] } = {
  org: ['acme'],
  user: ['alice'],
  client_id: ['web'],
  session: ['s-1'],
  app: ['ledger'],
  issuer: ['https%3A%2F%2Fidp.example'],
  id: ['g1', 'i1', 'other', 'alice'],
  key: ['auditor', 'feature.invoicing'],
  stream_id: ['one'],
}

/** Every call of the description that reads, once for each of their names. */
async function reads(): Promise<readonly Call[]> {
  const { body } = await served.send('GET', '/openapi.json')
  return Object.entries<object>(body.paths)
    .filter(([path, methods]) => 'get' in methods && path.includes('{'))
    .flatMap(([path]) => urlsOf(path).map((url) => ({ method: 'GET', path, url })))
}

function urlsOf(path: string): readonly string[] {
  const [parameter, name = ''] = /\{(\w+)\}/.exec(path) ?? []
  if (parameter === undefined) return [path]
  const names = THEIRS[name]
  if (names === undefined) throw new Error(`the table above does not say what ${parameter} of ${path} is`)
  return names.flatMap((one) => urlsOf(path.replace(parameter, one)))
}

/** The call with names that nobody has, and both names of each. */
function unknown({ path, url, ...rest }: Call): { readonly call: Call; readonly names: readonly string[] } {
  const names: string[] = []
  const given = url.split(/[/:?]/)
  let changed = url
  path.split(/[/:?]/).forEach((part, i) => {
    const name = given[i] ?? ''
    if (!part.startsWith('{')) return
    const other = part === '{issuer}' ? 'https%3A%2F%2Fnobody.example' : `nobody-${i}`
    changed = changed.replace(`/${name}`, `/${other}`)
    names.push(name, other, decodeURIComponent(name), decodeURIComponent(other))
  })
  return { call: { path, url: changed, ...rest }, names }
}

async function answerOf(call: Call, names: readonly string[], headers: Headers) {
  const answer = await sendWrite(served, call as WriteCall, stranger, headers)
  const hidden = (text: string): string =>
    names.reduce((shown, name) => shown.replaceAll(name, '…'), text).replaceAll(/"request_id":"[^"]*"/g, '')
  return {
    status: answer.status,
    body: hidden(await answer.text()),
    headers: ['etag', 'location', 'last-modified', 'retry-after'].map((name) => answer.headers.get(name)),
  }
}

const withNames = WRITES.filter(({ path }) => path.includes('{'))
/** Below the caller's own organization. */
const ofOwn = (call: Call): Call => ({ ...call, url: call.url.replace('/organizations/acme', '/organizations/beta') })

async function expectNoMore(call: Call, headers: Headers = {}): Promise<void> {
  const { call: other, names } = unknown(call)
  expect(other.url).not.toBe(call.url)
  const [theirs, nobodys] = [await answerOf(call, names, headers), await answerOf(other, names, headers)]
  expect([call.url, theirs]).toEqual([call.url, nobodys])
  expect([call.url, theirs.status >= 400]).toEqual([call.url, true])
}

describe('a call about another tenant', () => {
  test.each(withNames)('$method $path says no more than about what nobody has', (call) => expectNoMore(call))

  test.each([{ 'if-match': '*' }, { 'if-match': '"x"' }, { 'if-none-match': '*' }, { 'if-none-match': '"x"' }])(
    'with the condition %j says no more than about what nobody has',
    async (headers) => {
      for (const call of [...withNames, ...(await reads())]) await expectNoMore(call, headers)
    },
  )

  test('that reads says no more than about what nobody has, each of them', async () => {
    const all = await reads()
    expect(all.length).toBeGreaterThan(20)
    for (const call of all) await expectNoMore(call)
  })
})

describe('a call about one’s own organization', () => {
  const below = ({ path }: Call): boolean => /^\/v1\/organizations\/\{org\}\/.*\{/.test(path)

  // A PUT makes what it names. That of a member says whether the person exists, as whoever invites by id has to know.
  test('says no more of what lies below another one than of what nobody has', async () => {
    const all = [...withNames, ...(await reads())].filter((call) => below(call) && call.method !== 'PUT')
    expect(all.length).toBeGreaterThan(5)
    for (const call of all) await expectNoMore({ ...ofOwn(call), path: call.path.replace('{org}', 'org') })
  })
})
