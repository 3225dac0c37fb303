import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer, SendOptions } from '../harness.ts'
import { PLANS } from './certification.ts'
import type { Module } from './certification-plan.ts'
import { openRecords, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

const PAGES_MAX = 20
const MODULES = PLANS.flatMap(([, modules]) => modules)

async function send(
  module: Module,
  body: unknown = module.body,
  headers: { [name: string]: string } = {},
): Promise<Answer> {
  const { path, method = 'POST', raw, contentType = 'application/json', credentials } = module
  const token = credentials === undefined ? world.pep : `${world.pep}x`
  const options: SendOptions = {
    headers: { 'content-type': contentType, ...headers },
    ...(credentials !== 'none' && { token }),
    ...(raw === undefined ? body !== undefined && { body } : { raw }),
  }
  return world.send(method, `/access/v1/${path}`, options)
}

function expectAnswer({ expected }: Module, { status, headers, body }: Answer): void {
  if ('status' in expected) {
    expect(expected.status).toContain(status)
    if (status === 401) expect(headers.get('www-authenticate')).toBeTruthy()
    return
  }
  expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^application\/json/)])
  if ('decision' in expected) {
    expect([body.decision, body.evaluations]).toEqual([expected.decision, undefined])
  } else if ('decisions' in expected) {
    expect(body.decision).toBeUndefined()
    expect(body.evaluations.map((one: { decision: unknown }) => one.decision)).toEqual(expected.decisions)
  } else {
    // The runner compares whole objects: expected ones must be among the results, with no further member.
    expect(body.results).toEqual(expect.arrayContaining([...expected.results]))
    if (expected.results.length === 0) expect(body.results).toEqual([])
    expect(Object.keys(body)[0]).toBe('page')
  }
}

describe.each(PLANS)('the certification plan authzen-pdp-%s', (_plan, modules) => {
  test.each(modules.map((module) => [module.name, module] as const))('%s', async (_name, module) => {
    const headers = { 'x-request-id': 'module-1' }
    const answer = await send(module, module.body, module.how === 'request-id' ? headers : {})
    if (module.how === 'pages') {
      let { body } = answer
      const results = [...body.results]
      for (let pages = 0; body.page.next_token !== ''; pages += 1) {
        expect(pages).toBeLessThan(PAGES_MAX)
        body = (await send(module, { ...Object(module.body), page: { token: body.page.next_token } })).body
        results.push(...body.results)
      }
      expectAnswer(module, { ...answer, body: { ...answer.body, results } })
      return
    }
    expectAnswer(module, answer)
    if (module.how === 'request-id') expect(answer.headers.get('x-request-id')).toBe('module-1')
    if (module.how === 'again')
      for (let times = 0; times < 3; times += 1) expect((await send(module)).body).toEqual(answer.body)
  })
})

describe('the table of the certification', () => {
  test('has 127 modules, each once', () => {
    expect(PLANS.map(([plan, modules]) => [plan, modules.length])).toEqual([
      ['evaluation', 33],
      ['evaluations', 27],
      ['action-search', 22],
      ['resource-search', 20],
      ['subject-search', 25],
    ])
    expect(new Set(MODULES.map(({ name }) => name)).size).toBe(127)
  })

  test('is counted in the book, which names what differs', () => {
    const differing = MODULES.filter(({ deviation }) => deviation !== undefined)
    const page = readFileSync(new URL('../../../../../docs/authzen.md', import.meta.url), 'utf8')
    expect(page).toContain(`${MODULES.length - differing.length} of the ${MODULES.length} modules`)
    for (const { name } of differing) expect(page).toContain(`\`${name}\``)
  })
})
