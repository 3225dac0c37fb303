/** Signing in behind a gateway: what the door of Envoy answers to a browser, and what the service gets. */

import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponse,
} from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { MINUTE } from './steps.ts'
import { openWorld, SESSION, type World } from './world.ts'

const SOCKET = join(tmpdir(), `portcullis-door-${randomUUID()}.sock`)
const behind = (socket: string): Parameters<typeof openWorld>[0] => ({
  routes: 'GET /docs/{id}: viewer doc:{id}',
  extra: `doors: [{profile: envoy, listen: "unix:${socket}"}]`,
})
const { check } = serviceDefinition(Authorization)
let world: World
let gateway: Client
beforeAll(async () => {
  world = await openWorld(behind(SOCKET))
  gateway = new Client(`unix:${SOCKET}`, credentials.createInsecure())
})
afterAll(async () => {
  gateway.close()
  await world.close()
})

type Fields = readonly (readonly [name: string, value: string])[]

/** As Envoy asks about a page that a person opens. Rejects when no answer comes within `deadlineMs`. */
function ask(path: string, fields: Fields = [], deadlineMs = 20_000): Promise<CheckResponse> {
  const { host } = new URL(world.origin)
  const all: Fields = [
    [':method', 'GET'],
    [':path', path],
    [':authority', host],
    [':scheme', 'http'],
    ['sec-fetch-mode', 'navigate'],
    ['sec-fetch-dest', 'document'],
    ...fields,
  ]
  const http = {
    method: 'GET',
    path,
    host,
    scheme: 'http',
    protocol: 'HTTP/1.1',
    headerMap: { headers: all.map(([key, value]) => ({ key, rawValue: Buffer.from(value) })) },
  }
  const address = { socketAddress: { address: '192.0.2.1' } }
  const message: MessageInitShape<typeof CheckRequestSchema> = {
    attributes: { source: { address }, request: { http } },
  }
  if (check === undefined) throw new Error('the service has no such method')
  return new Promise((resolve, reject) => {
    gateway.makeUnaryRequest(
      check.path,
      check.requestSerialize,
      check.responseDeserialize,
      create(CheckRequestSchema, message),
      { deadline: Date.now() + deadlineMs },
      (err, response) => (err === null && response !== undefined ? resolve(response as CheckResponse) : reject(err)),
    )
  })
}

function denied({ httpResponse }: CheckResponse): { status: number; fields: Fields } {
  if (httpResponse.case !== 'deniedResponse') throw new Error('the request was allowed')
  const { status, headers } = httpResponse.value
  // Envoy drops what is to be appended to a denied response.
  expect(headers.filter(({ append }) => append === true)).toEqual([])
  return { status: status?.code ?? 0, fields: headers.map(({ header }) => [header?.key ?? '', header?.value ?? '']) }
}

test('a browser without a session is sent to sign in by the denied response', async () => {
  const { status, fields } = denied(await ask('/docs/1'))
  const named = new Map(fields)
  expect([status, named.get('location')?.startsWith(world.issuers[0].url)]).toEqual([302, true])
  expect(named.get('set-cookie')).toMatch(/^__Host-portcullis-state-/)
})

test('a session is allowed, and its cookie is taken out of what the service gets', async () => {
  const browser = world.browser()
  await browser.open('/docs/1')
  const cookie = `${SESSION}=${browser.jar.get(SESSION)}`
  for (const [sent, kept] of [
    [`a=1; ${cookie}; b=2`, 'a=1; b=2'],
    [cookie, undefined],
  ]) {
    const { httpResponse } = await ask('/docs/1', [['cookie', sent ?? '']])
    if (httpResponse.case !== 'okResponse') throw new Error('the request was denied')
    const set = new Map(httpResponse.value.headers.map(({ header }) => [header?.key, header?.value]))
    expect([set.get('x-auth-subject'), set.get('cookie'), set.has('authorization')]).toEqual(['alice', kept, false])
    expect(httpResponse.value.headersToRemove.includes('cookie')).toBe(kept === undefined)
  }
})

test('a renewed session is added to the cookies of the service, and replaces none', async () => {
  let aheadMs = 0
  const renewing = await openWorld({ ...behind(`${SOCKET}3`), clock: () => Date.now() + aheadMs })
  const [own, usual] = [gateway, world]
  gateway = new Client(`unix:${SOCKET}3`, credentials.createInsecure())
  world = renewing
  renewing.issuers[0].behave.padding = 5_000
  const browser = renewing.browser()
  await browser.open('/docs/1')
  aheadMs = 4.5 * MINUTE
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const { httpResponse } = await ask('/docs/1', [['cookie', cookie]])
  if (httpResponse.case !== 'okResponse') throw new Error('the request was denied')
  const set = httpResponse.value.responseHeadersToAdd.filter(({ header }) => header?.key === 'set-cookie')
  expect([set.length > 1, set.every(({ append }) => append === true)]).toEqual([true, true])
  gateway.close()
  ;[gateway, world] = [own, usual]
  await renewing.close()
})

test('a page of the sign-in is answered in place of the service', async () => {
  const { status, fields } = denied(await ask('/.portcullis/signed-out'))
  expect([status, new Map(fields).get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
})

test('a slow issuer does not keep the gateway waiting, which might let the request pass', async () => {
  const slow = await openWorld(behind(`${SOCKET}2`))
  const [own, usual] = [gateway, world]
  gateway = new Client(`unix:${SOCKET}2`, credentials.createInsecure())
  world = slow
  slow.issuers[0].behave.hangs = true
  const [page, start] = await Promise.all([
    ask('/docs/1', [], 5_000).then(denied),
    ask('/.portcullis/sign-in', [], 5_000).then(denied),
  ])
  expect([page.status, start.status]).toEqual([401, 503])
  gateway.close()
  ;[gateway, world] = [own, usual]
  await slow.close()
})
