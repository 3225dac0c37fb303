import { describe, expect, test } from 'vitest'
import { openTenantWorld } from '../management/tenant-world.ts'

const world = openTenantWorld()
const put = async (headers: { readonly [name: string]: string }, body: string, path = '/v1/users/zoe') => {
  const { status } = await fetch(world.served.url + path, {
    method: 'PUT',
    headers: { authorization: `Bearer ${world.admin}`, ...headers },
    body,
  })
  return status
}
const JSON_TYPE = 'application/json'

describe('a body that others could read as another text', () => {
  test.each([
    [{ 'content-type': JSON_TYPE, 'content-encoding': 'gzip' }],
    [{ 'content-type': JSON_TYPE, 'content-encoding': 'identity, br' }],
    [{ 'content-type': JSON_TYPE, 'content-encoding': '' }],
    [{ 'content-type': `${JSON_TYPE}; charset=utf-16` }],
    [{ 'content-type': `${JSON_TYPE}; charset=utf-7` }],
    [{ 'content-type': `${JSON_TYPE}; charset="iso-8859-1"` }],
    [{ 'content-type': `${JSON_TYPE}; charset=utf-8; charset=utf-16` }],
  ])('is 415: %j', async (headers) => {
    expect(await put(headers, '{"name":"Zoe"}')).toBe(415)
  })

  test('is 415 as YAML, too', async () => {
    const headers = { 'content-type': 'application/yaml; charset=utf-16' }
    expect(await put(headers, 'permissions: {}', '/v1/apps/zoe/manifest')).toBe(415)
  })

  test.each([
    [{ 'content-type': JSON_TYPE }],
    [{ 'content-type': `${JSON_TYPE};charset=UTF-8` }],
    [{ 'content-type': `${JSON_TYPE}; charset="utf-8"` }],
    [{ 'content-type': `${JSON_TYPE}; odata=verbose` }],
    [{ 'content-type': JSON_TYPE, 'content-encoding': 'Identity' }],
  ])('in UTF-8 as it is passes: %j', async (headers) => {
    expect(await put(headers, '{"name":"Zoe"}')).toBeLessThan(300)
  })
})

test.each([
  '\u200b',
  '\u202e',
  '\u00ad',
  '\u2066',
  '\u2060',
  '\u200f',
  '\u0085',
  '\u3164',
  '\ufeff',
  '\u2800',
  '\ufff9',
  '\u{e0001}',
  '\u{e0041}',
  '\u{e0100}',
  '\u{1d173}',
])('an address with the invisible character %j is refused', async (mark) => {
  const body = JSON.stringify({ email: `b${mark}ob@corp.example` })
  expect(await put({ 'content-type': JSON_TYPE }, body, '/v1/users/unseen')).toBe(400)
  const invited = await fetch(`${world.served.url}/v1/organizations/acme/invitations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.admin}`, 'content-type': JSON_TYPE },
    body: JSON.stringify({ email: `b${mark}ob@corp.example`, role: 'member' }),
  })
  expect(invited.status).toBe(400)
  expect(await invited.json()).toMatchObject({ code: 'request_invalid', detail: expect.stringContaining('/email') })
})
