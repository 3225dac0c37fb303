import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER } from '../harness.ts'
import { openRecords, type World } from './records.ts'

let world: World
beforeAll(async () => {
  world = await openRecords()
})
afterAll(() => world.close())

describe('the configuration', () => {
  test('names the issuer’s own addresses, whatever the Host field says, and signs them (c-6)', async () => {
    const { status, headers, body } = await world.send('GET', '/.well-known/authzen-configuration', {
      headers: { host: 'evil.example' },
    })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('public, max-age=300')
    const { signed_metadata: signed, ...plain } = body
    expect(plain).toEqual({
      policy_decision_point: ISSUER,
      access_evaluation_endpoint: `${ISSUER}/access/v1/evaluation`,
      access_evaluations_endpoint: `${ISSUER}/access/v1/evaluations`,
      search_subject_endpoint: `${ISSUER}/access/v1/search/subject`,
      search_resource_endpoint: `${ISSUER}/access/v1/search/resource`,
      search_action_endpoint: `${ISSUER}/access/v1/search/action`,
    })
    expect(decodeJwt(signed)).toEqual({ iss: ISSUER, ...plain })
  })
})
