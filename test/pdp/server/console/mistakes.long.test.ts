/** What a newcomer types wrong, and what the console says about it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { get, signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())
const read = async (person: 'root' | 'anna' | 'tom', path: string): Promise<string> =>
  (await get(await signedInTo(world, person), `/console/${path}`)).text.replaceAll(/<[^>]*>/g, '')

test('a resource without a type is answered with how to write one, and without the API’s words', async () => {
  const text = await read('root', 'ask?org=acme&subject=user:bob&relation=viewer&resource=doc1')
  expect(text).toContain('doc1 names no resource. Write type:id, such as doc:1.')
  expect(text).not.toContain('/permissions')
})

test.each(['relationships', 'invitations', 'ask'])('%s says that there is no such organization', async (at) => {
  expect(await read('root', `${at}?org=nowhere`)).toContain('There is no organization nowhere')
  expect(await read('root', `${at}?org=acme`)).not.toContain('There is no organization')
  const { status, text } = await get(await signedInTo(world, 'root'), `/console/${at}?org=nowhere`)
  expect([status, text.includes(`href="/console/${at}?org=acme"`), text.includes('Nothing is stored')]).toEqual([
    404,
    true,
    false,
  ])
  // Who may not look there learns nothing.
  expect(await read('anna', `${at}?org=nowhere`)).not.toContain('There is no organization')
})

test('one mistake is said once', async () => {
  const text = await read('root', 'relationships?org=acme&object=doc')
  expect(text.match(/is not the object of a tuple/g)).toHaveLength(1)
  expect(text).toContain('write type:id, such as doc:1')
})

test('a question about nobody says so, and not what somebody would lack', async () => {
  const text = await read('root', 'ask?org=acme&subject=user:nobody&relation=viewer&resource=doc:1')
  expect(text).toContain('There is no user nobody, and who does not exist may do nothing')
  expect(text).not.toMatch(/nothing grants it|would allow it/)
})

test('an organization that asked nothing yet shows the command with its id', async () => {
  expect(await read('root', 'decisions?org=globex')).toContain('portcullis check user:alice viewer doc:1 -o globex')
})

test('a list of what somebody may do says when there is nobody of that name', async () => {
  const text = await read('root', 'what?org=acme&subject=user:nobody&relation=viewer&type=doc')
  expect(text).toContain('There is no user nobody')
  expect(await read('root', 'what?org=acme&subject=service:nothing&relation=viewer&type=doc')).toContain(
    'There is no client nothing',
  )
  const known = await read('root', 'what?org=acme&subject=user:anna&relation=viewer&type=nowhere')
  expect(known).not.toContain('There is no')
  expect(known).toContain('See the relationships of user:anna')
})

test.each([
  ['ask?org=acme&subject=user:ana&relation=viewer&resource=doc:1', '/console/ask?org=acme&amp;subject=user%3Aanna'],
  ['what?org=acme&subject=user:ana&relation=viewer&type=doc', '/console/what?org=acme&amp;subject=user%3Aanna'],
])('%s names the person whose id is near, and leads to the same question', async (at, to) => {
  const { text } = await get(await signedInTo(world, 'root'), `/console/${at}`)
  expect(text.replaceAll(/<[^>]*>/g, '')).toContain('Did you mean anna?')
  expect(text).toContain(`href="${to}`)
})

test('a person is found by e-mail address, by those who may see it', async () => {
  const found = await get(await signedInTo(world, 'root'), '/console/people?org=acme&user=ANNA@acme.example')
  expect([found.status, found.headers.get('location')]).toEqual([
    303,
    `${world.issuer}/console/people?org=acme&user=anna`,
  ])
  expect((await get(await signedInTo(world, 'anna'), '/console/people?org=acme&user=bob@acme.example')).status).toBe(
    404,
  )
})

test.each([
  ['streams?org=acme&stream=nothing', 404],
  ['people?org=acme&user=nobody-like-this', 404],
  ['relationships?org=globex', 403],
])('what %s cannot show stands between the screens', async (at, status) => {
  const shown = await get(await signedInTo(world, status === 403 ? 'anna' : 'root'), `/console/${at}`)
  expect([shown.status, shown.text.includes('role="alert"'), shown.text.includes('aria-label="Screens"')]).toEqual([
    status,
    true,
    true,
  ])
})

test('a refused request is found by the body of its refusal, and in the organization that asked', async () => {
  await world.ask({ requestId: 'pasted-request', relation: 'viewer', resource: 'doc:1' })
  const pasted = (org: string, body: object): string =>
    `decisions?${new URLSearchParams({ org, request: JSON.stringify(body) })}`
  const instance = 'urn:portcullis:request:pasted-request'
  expect(await read('root', pasted('acme', { status: 403, instance }))).toContain('viewer doc:1')
  expect(await read('root', pasted('acme', { request_id: 'pasted-request' }))).toContain('viewer doc:1')
  expect(await read('root', pasted('globex', { instance }))).toContain('It was asked in acme.')
  expect(await read('tom', pasted('globex', { instance }))).not.toContain('acme.')
})

test('a list of a type that no model knows says so', async () => {
  const text = await read('root', 'what?org=acme&subject=user:bob&relation=viewer&type=docs')
  expect(text).toContain('No model gives type docs a relation.')
})

test('a near name is told only to those who may see who there is', async () => {
  const asked = 'ask?org=acme&subject=user:tim&relation=viewer&resource=doc:1'
  expect(await read('root', asked)).toContain('Did you mean tom?')
  // He is in another organization.
  expect(await read('anna', asked)).not.toContain('tom')
  expect(await read('root', 'people?org=acme&user=ana')).toContain('There is no user ana. Did you mean anna?')
  expect(await read('anna', 'people?org=acme&user=bobb')).toContain('There is no such member. Did you mean bob?')
  expect(await read('anna', 'people?org=acme&user=tim')).not.toContain('tom')
})

test('a list of who may that is empty says where to look', async () => {
  expect(await read('root', 'who?org=acme&resource=doc:nowhere&relation=viewer&type=user')).toContain(
    'No relationship, group, rule, membership or role gives it. See the relationships of doc:nowhere',
  )
})
