import { describe, expect, test } from 'vitest'
import { type DecisionLine, rejectionLine } from '../../../sidecar/enforce/decision-log.ts'
import { createRefusals } from '../../../sidecar/runtime/refusals.ts'

const refused = (id: string): DecisionLine =>
  rejectionLine('request_invalid', { requestId: id, address: '', detail: 'secret of the operator' })
const given = () => {
  const { find, decided } = createRefusals()
  return { find, decide: decided }
}

describe('the last refusals', () => {
  test('are found by their request id, with reason and status and nothing of the request', () => {
    const { find, decide } = given()
    decide({ ...refused('a'), door: 'nginx' })
    expect(find('a')).toEqual({ door: 'nginx', reason: 'request_invalid', status: 400 })
    expect(find('b')).toBeNull()
  })

  test.each(['allow', 'shadow', 'answer'] as const)('do not hold a request with the decision %s', (decision) => {
    const { find, decide } = given()
    decide({ ...refused('a'), decision })
    expect(find('a')).toBeNull()
    decide(refused('a'))
    decide({ ...refused('a'), decision })
    expect(find('a')).toBeNull()
  })

  test('are a thousand: the next one takes the place of the oldest', () => {
    const { find, decide } = given()
    for (let at = 0; at < 1_000; at += 1) decide(refused(`id${at}`))
    expect(find('id0')).not.toBeNull()
    decide(refused('id1000'))
    expect([find('id0'), find('id1')?.status, find('id1000')?.status]).toEqual([null, 400, 400])
  })
})
