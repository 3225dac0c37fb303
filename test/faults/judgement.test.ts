/** What counts as a lost question, and what as the machine's delay. */
import { expect, test } from 'vitest'
import type { Fault } from './catalogue.ts'
import { unanswered } from './judgement.ts'
import type { Asked } from './load.ts'
import type { Part } from './part.ts'

const REASONS: { readonly [id: string]: string } = {
  lost: 'the connection was lost twice',
  late: 'the PDP did not answer in time',
  redis: 'the replay memory did not answer',
  busy: 'this sidecar was too busy to read an answer in time',
}
const log = Object.entries(REASONS)
  .map(([id, detail]) => `{"event":"decision","request_id":"${id}","detail":"${detail}"}\n`)
  .join('')
const system = { sidecars: [{ part: { log: () => log } as unknown as Part, port: 1, readiness: '' }] }

const ask = (id: string, outcome: Asked['outcome'] = 'unavailable', startMs = 50): Asked => ({
  kind: 'bearer',
  sidecar: 0,
  startMs,
  endMs: startMs + 1,
  outcome,
  detail: '503',
  id,
})
const well = (count: number): Asked[] => Array.from({ length: count }, (_, at) => ask(`well-${at}`, 'allowed'))
const judge = (questions: Fault['questions'], asked: Asked[], endMs = 100): string[] =>
  unanswered(questions, { system, asked, beginMs: 0, endMs })

test('of unaffected questions none may be lost, whatever their number', () => {
  expect(judge('unaffected', [...well(5_000), ask('lost')])[1]).toContain('the connection was lost twice')
  expect(judge('unaffected', [...well(5_000), ask('nobody-knows')]).length).toBe(2)
  expect(judge('unaffected', well(10))).toEqual([])
})

test('of unaffected questions a few may run into a deadline, since the machine has other things to do', () => {
  expect(judge('unaffected', [...well(998), ask('late'), ask('busy')])).toEqual([])
  expect(judge('unaffected', [...well(50), ask('late')])).toEqual([])
  expect(judge('unaffected', [...well(998), ask('late'), ask('late'), ask('busy')]).length).toBe(2)
  expect(judge('unaffected', [...well(50), ask('late'), ask('busy')]).length).toBe(2)
})

test('of kept questions none may be lost, and any may be late', () => {
  expect(judge('kept', [...well(5_000), ask('lost')])[1]).toContain('the connection was lost twice')
  expect(judge('kept', [...well(1), ask('late'), ask('busy')])).toEqual([])
})

test('questions that are routed around count once the others had time to notice', () => {
  expect(judge('routed around', [ask('lost')])).toEqual([])
  expect(judge('routed around', [ask('lost', 'unavailable', 5_000)], 10_000).length).toBe(2)
  expect(judge('routed around', [ask('redis', 'unavailable', 5_000)], 10_000)).toEqual([])
  expect(judge('routed around', [ask('late', 'unavailable', 5_000)], 10_000).length).toBe(2)
  expect(judge('back', [ask('lost')])).toEqual([])
  expect(judge('unaffected', [ask('lost', 'unavailable', 200)])).toEqual([])
})
