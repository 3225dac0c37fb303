/**
 * One tenant's call costs what that tenant has: the same call among a hundred organizations and among ten thousand, or a million
 * in full, takes as many statements, and these look at as many blocks of tables and indexes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LONG } from '../../../../support/effort.ts'
import {
  blocks,
  type Counted,
  calls,
  openStatementCounter,
  type StatementCounter,
} from '../../../../support/statements.ts'
import { type Call, callsOf, ELSEWHERE } from './calls.ts'
import { openWorld, type World } from './world.ts'

const FEW = 100
const SIZES = LONG ? [10_000, 1_000_000] : [10_000]
/** An index of more rows has more levels; reading through the smallest of the tables would take far more. */
const BLOCKS = (few: number): number => few * 2 + 60

type Cost = { readonly answer: string; readonly counted: readonly Counted[] }
type Measured = { readonly costs: ReadonlyMap<string, Cost>; readonly scan: number; close(): Promise<void> }

async function measure(count: number): Promise<Measured & { readonly world: World }> {
  const world = await openWorld(count)
  // What it does by itself belongs to no call.
  await world.served.transmitter.close()
  const counter = await openStatementCounter(world.connectionString)
  const costs = new Map<string, Cost>()
  // What a process reads once is not the call's.
  await send(world, { operation: '', as: 'tenant', method: 'GET', path: '/v1/organizations/mine' })
  for (const call of callsOf(world)) costs.set(call.operation, await costOf(world, counter, call))
  const scan = await counter.during(() =>
    world.served.sql.query("select count(*) from role_grant where lower(role) = 'other'"),
  )
  const close = async (): Promise<void> => {
    await counter.close()
    await world.served.close()
  }
  return { world, costs, scan: blocks(scan), close }
}

async function costOf(world: World, counter: StatementCounter, call: Call): Promise<Cost> {
  let answer = ''
  const counted = await counter.during(async () => {
    answer = await send(world, call)
  })
  return { answer, counted }
}

/** `done`, or what was wrong. */
async function send({ served, tokens }: World, { as, method, path, body, raw }: Call): Promise<string> {
  const content = raw ?? (body === undefined ? null : JSON.stringify(body))
  const type = path.startsWith('/scim/') ? 'application/scim+json' : 'application/json'
  const response = await fetch(`${served.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${tokens[as]}`,
      ...(content === null ? {} : { 'content-type': raw === undefined ? type : 'application/x-ndjson' }),
    },
    body: content,
  })
  const text = await response.text()
  return response.ok ? 'done' : `${response.status} ${text}`
}

let few: Awaited<ReturnType<typeof measure>>
beforeAll(async () => {
  few = await measure(FEW)
}, 120_000)
afterAll(() => few.close())

test('every operation of the described API is measured, or is said to be about something else', async () => {
  const { body } = await few.world.served.send('GET', '/openapi.json')
  const described = Object.entries<Record<string, { operationId?: string }>>(body.paths)
    .filter(([path]) => path.startsWith('/v1/'))
    .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId ?? ''))
  const measured = new Set([...few.costs.keys()].map((name) => name.split(/[ ,]/)[0] ?? ''))
  expect(described.filter((name) => name !== '' && !measured.has(name) && !ELSEWHERE.includes(name))).toEqual([])
})

describe.each(SIZES)('among %i organizations', (count) => {
  let many: Awaited<ReturnType<typeof measure>>
  beforeAll(async () => {
    many = await measure(count)
    if (process.env.PORTCULLIS_GROWTH_TABLE !== undefined) print(few, many)
  }, 900_000)
  afterAll(() => many.close())

  test('a statement that goes through all of them is seen', () => {
    expect(many.scan).toBeGreaterThan(BLOCKS(few.scan))
  })

  test('each call takes as many statements as among a hundred, and looks at as many blocks', () => {
    const worse: string[] = []
    for (const [name, cost] of many.costs) {
      const before = few.costs.get(name)
      if (before === undefined) throw new TypeError(`${name} was not measured`)
      const refused = name.includes('refused') ? expect.stringMatching(/^4/) : 'done'
      expect.soft([name, before.answer, cost.answer]).toEqual([name, refused, refused])
      if (calls(cost.counted) > calls(before.counted) + 2)
        worse.push(`${name}: ${calls(before.counted)} statements, now ${calls(cost.counted)}`)
      if (blocks(cost.counted) > BLOCKS(blocks(before.counted)))
        worse.push(`${name}: ${blocks(before.counted)} blocks, now ${blocks(cost.counted)}: ${most(cost.counted)}`)
    }
    expect(worse).toEqual([])
  })
})

const most = (counted: readonly Counted[]): string =>
  counted
    .toSorted((a, b) => b.blocks - a.blocks)[0]
    ?.text.replaceAll(/\s+/g, ' ')
    .slice(0, 200) ?? ''

function print(before: Measured, after: Measured): void {
  for (const [name, { counted }] of after.costs) {
    const was = before.costs.get(name)?.counted ?? []
    console.log([name, calls(was), calls(counted), blocks(was), blocks(counted)].join(' | '))
  }
}
