/** What a client redeems is used up by an answer that it can get, and by no other. */
import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBrowser } from '../../../support/browser.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { CIBA, createFlows, DEVICE_CODE } from '../flows.ts'
import { openWorld, postToken, REDIRECT, SECRET, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const isActive = async (token: unknown) => (await world.identity.introspect(String(token))).active

type Form = Record<string, string>
const device = async (): Promise<Form> => {
  const { started, browser } = await flows.startDevice(eve)
  await flows.answerDevice(browser, started.verification_uri, eve, started.user_code)
  return { grant_type: DEVICE_CODE, device_code: started.device_code }
}
const ciba = async (): Promise<Form> => {
  const { started } = await flows.startCiba(eve)
  await flows.answerCiba(createBrowser(world.issuer), eve)
  return { grant_type: CIBA, auth_req_id: started.auth_req_id }
}
const code = async (): Promise<Form> => {
  const back = await createFlow(world).authorize({ client_id: 'flows', scope: 'openid' })
  const value = back.searchParams.get('code') ?? ''
  return { grant_type: 'authorization_code', code: value, redirect_uri: REDIRECT, code_verifier: VERIFIER }
}
const refresh = async (): Promise<Form> => {
  const { tokens } = await flows.code(eve)
  return { grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' }
}
const KINDS = [
  ['a device code', 'DeviceCode', device],
  ['an auth_req_id', 'BackchannelAuthenticationRequest', ciba],
  ['an authorization code', 'AuthorizationCode', code],
  ['a refresh token', 'RefreshToken', refresh],
] as const

/** While nobody can use up a record of that kind. */
const whileHeld = <T>(kind: string, run: (at: Pick<World['sql'], 'query'>) => Promise<T>): Promise<T> =>
  world.sql.transaction(async (at) => {
    await at.query('select 1 from oidc_record where kind = $1 for update', [kind])
    return run(at)
  })

/** The same identity service, which gives up after `deadlineMs`. */
async function listen(deadlineMs?: number): Promise<{ readonly issuer: string; readonly answers: ServerResponse[] }> {
  const answers: ServerResponse[] = []
  const server = createServer((req, res) => {
    answers.push(res)
    void world.identity.handle(req, res, deadlineMs)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  const address = server.address()
  return { issuer: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, answers }
}

/** A request for a token whose form is still to be sent. */
function open(issuer: string) {
  const headers = {
    authorization: `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`,
    'content-type': 'application/x-www-form-urlencoded',
    expect: '100-continue',
  }
  return request(`${issuer}/oauth/token`, { method: 'POST', headers })
}

describe.each(KINDS)('%s', (_, kind, obtain) => {
  test('is not used up by a request that was refused as late', async () => {
    const form = await obtain()
    const { issuer } = await listen(200)
    await whileHeld(kind, async () => {
      expect((await postToken({ ...world, issuer }, form, { id: 'flows' })).status).toBe(503)
    })
    const again = await postToken(world, form, { id: 'flows' })
    expect([again.status, await isActive(again.body.access_token)]).toEqual([200, true])
  })

  test('is not used up by a request whose client has gone', async () => {
    const form = await obtain()
    const { issuer, answers } = await listen()
    await whileHeld(kind, async () => {
      const gone = open(issuer)
      gone.on('error', () => undefined)
      gone.end(new URLSearchParams(form).toString())
      await once(gone, 'continue')
      gone.destroy()
      await expect.poll(() => answers[0]?.closed).toBe(true)
    })
    const again = await postToken(world, form, { id: 'flows' })
    expect([again.status, await isActive(again.body.access_token)]).toEqual([200, true])
  })
})

describe.each(KINDS.slice(0, 2))('%s', (_, kind, obtain) => {
  const begin = async () => {
    const poll = open(world.issuer)
    poll.flushHeaders()
    await once(poll, 'continue')
    return poll
  }
  const isRefused = async (poll: ReturnType<typeof open>, form: Form): Promise<void> => {
    poll.end(new URLSearchParams(form).toString())
    const [answer] = await once(poll, 'response')
    expect([answer.statusCode, await json(answer)]).toMatchObject([400, { error: 'invalid_grant' }])
  }

  test('keeps its token when another poll was under way, and loses it to a much later one', async () => {
    const form = await obtain()
    const other = await begin()
    const { body } = await postToken(world, form, { id: 'flows' })
    await isRefused(other, form)
    expect(await isActive(body.access_token)).toBe(true)
    await world.sql.query(
      `update oidc_record set consumed_at = consumed_at - interval '1 minute' where kind = $1 and consumed_at is not null`,
      [kind],
    )
    expect((await postToken(world, form, { id: 'flows' })).status).toBe(400)
    expect(await isActive(body.access_token)).toBe(false)
  })

  test('keeps its token when another poll began while the first one was being stored', async () => {
    const form = await obtain()
    const [first, other] = await whileHeld(kind, async (at) => {
      const answer = postToken(world, form, { id: 'flows' })
      const waiting = 'select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))'
      await expect.poll(async () => (await at.query(waiting)).length, { timeout: 3_500 }).toBe(1)
      return [answer, await begin()] as const
    })
    const { body } = await first
    await isRefused(other, form)
    expect(await isActive(body.access_token)).toBe(true)
  })
})
