import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { compileLate } from '../../../../../pdp/server/serve/http/late-schemas.ts'

const BODY = { type: 'object', additionalProperties: false, properties: { name: { type: 'string' } } }

async function server(schemas: { readonly late: object }) {
  const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })
  compileLate(app)
  app.post('/question', { config: { deadline: 'decision' }, schema: { body: BODY } }, async () => 'answered')
  app.post('/late', { schema: { body: schemas.late } }, async () => 'done')
  await app.ready()
  return app
}

describe('compileLate', () => {
  test('refuses what breaks the schema of a route, at its first call and at the next', async () => {
    const app = await server({ late: BODY })
    for (const url of ['/late', '/late', '/question']) {
      const refused = await app.inject({ method: 'POST', url, payload: { name: 1 } })
      expect([refused.statusCode, refused.json().message]).toEqual([400, 'body/name must be string'])
      expect((await app.inject({ method: 'POST', url, payload: { name: 'a' } })).statusCode).toBe(200)
    }
  })

  test('answers a route with a schema that cannot be compiled with an error, and others as ever', async () => {
    const app = await server({ late: { type: 'no such type' } })
    const broken = await app.inject({ method: 'POST', url: '/late', payload: {} })
    expect(broken.statusCode).toBe(500)
    const good = await app.inject({ method: 'POST', url: '/question', payload: {} })
    expect(good.statusCode).toBe(200)
  })
})
