import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { decisions, openRecords, question, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

describe('who asks', () => {
  const about = (id: string) => question(id, 'read', 'record-1')

  test('a person may ask about themselves', async () => {
    const { status, body } = await world.post('evaluation', about('alice'), { token: world.token({}) })
    expect([status, body.decision]).toEqual([200, true])
  })

  test.each<[string, () => Promise<string> | string | undefined, number, string]>([
    ['nobody', () => undefined, 401, 'token_missing'],
    ['a token that never was', () => 'never', 401, 'token_invalid'],
    ['a person about somebody else', () => world.token({}), 403, 'permission_denied'],
    [
      'a service without the scope',
      () => world.manager({ client: 'plain', organization: 'acme', scopes: [] }),
      403,
      'scope_insufficient',
    ],
  ])('%s may not', async (_name, token, status, code) => {
    const given = await token()
    const options = { token: given as string }
    const answer = await world.send('POST', '/access/v1/evaluation', {
      ...(given === undefined ? {} : options),
      body: about('bob'),
    })
    expect([answer.status, answer.body.code]).toEqual([status, code])
    if (status === 401) expect(answer.headers.get('www-authenticate')).toBeTruthy()
  })

  test('a service that is bound may not name another organization, and one that is not may', async () => {
    const elsewhere = { ...about('bob'), context: { organization: 'globex' } }
    expect((await world.post('evaluation', elsewhere)).status).toBe(403)
    expect((await world.post('evaluation', { ...elsewhere, context: { organization: 7 } })).status).toBe(400)
    const token = await world.manager({ client: 'anywhere' })
    expect((await world.post('evaluation', elsewhere, { token })).body.decision).toBe(false)
    const here = { ...about('bob'), context: { organization: 'acme' } }
    expect((await world.post('evaluation', here, { token })).body.decision).toBe(true)
    expect((await world.post('evaluation', about('bob'), { token })).body.decision).toBe(false)
  })

  test('a service is looked up once for a batch, however many items name an organization', async () => {
    const token = await world.manager({ client: 'batcher' })
    const lookedUp = vi.spyOn(world.directory, 'client')
    const items = [1, 2, 3, 4].map(() => ({ context: { organization: 'acme' } }))
    const one = await world.post('evaluations', { ...about('bob'), evaluations: items.slice(0, 1) }, { token })
    const timesForOne = lookedUp.mock.calls.length
    const all = await world.post('evaluations', { ...about('bob'), evaluations: items }, { token })
    expect(lookedUp.mock.calls.length).toBe(2 * timesForOne)
    expect(timesForOne).toBeGreaterThan(0)
    lookedUp.mockRestore()
    expect([decisions(one), decisions(all)]).toEqual([[true], [true, true, true, true]])
  })
})
