/** Which other issuers are trusted, and with which transmitters. */
import { exportJWK, generateKeyPair } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served, serve } from '../../harness.ts'

let served: Served
let admin: string
beforeAll(async () => {
  served = await serve()
  admin = await served.manager()
  const organization = { id: 'acme', name: 'Acme', parent: null }
  await served.store.write(ENVIRONMENT, [{ kind: 'organization', id: 'acme', organization }], { context: CONTEXT })
})
afterAll(() => served.close())

const send = (method: string, path: string, body?: unknown) =>
  served.send(method, path, { token: admin, ...(body === undefined ? {} : { body }) })

describe('/v1/trusted-issuers', () => {
  const path = `/v1/trusted-issuers/${encodeURIComponent('https://idp.example')}`
  let document: { readonly [name: string]: unknown }
  beforeAll(async () => {
    const { publicKey } = await generateKeyPair('ES256')
    document = {
      jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'k' }] },
      algorithms: ['ES256'],
      audience: 'https://api.example/',
      subject_prefix: 'idp:',
      organizations: ['acme'],
    }
  })

  test('are put, listed and deleted', async () => {
    expect((await send('PUT', path, document)).status).toBe(201)
    expect((await send('PUT', path, document)).status).toBe(200)
    expect((await send('GET', '/v1/trusted-issuers')).body.items).toEqual([
      expect.objectContaining({ issuer: 'https://idp.example', subject_prefix: 'idp:' }),
    ])
    expect((await send('DELETE', path)).status).toBe(204)
    expect((await send('DELETE', path)).status).toBe(404)
  })

  test('change by what a PATCH names, and by the rules of PUT', async () => {
    expect((await send('PATCH', path, { subject_prefix: 'new:' })).status).toBe(404)
    await send('PUT', path, document)
    const changed = await send('PATCH', path, { organizations: ['acme', 'beta'] })
    expect(changed).toMatchObject({ status: 200, body: { ...document, organizations: ['acme', 'beta'] } })
    for (const wrong of [{ jwks: null }, { algorithms: ['HS256'] }, { jwks_uri: 'https://idp.example/jwks' }])
      expect((await send('PATCH', path, wrong)).status).toBe(400)
    await send('DELETE', path)
  })

  test.each([
    ['no keys', { jwks: undefined }],
    ['two key sets', { jwks_uri: 'https://idp.example/jwks' }],
    ['keys over plain http', { jwks: undefined, jwks_uri: 'http://idp.example/jwks' }],
    ['a symmetric algorithm', { algorithms: ['HS256'] }],
    ['no audience', { audience: undefined }],
    ['no prefix', { subject_prefix: '' }],
    ['no organization', { organizations: [] }],
  ])('are refused with %s', async (_, change) => {
    expect((await send('PUT', path, { ...document, ...change })).status).toBe(400)
  })

  describe('of one provider under an old and a new name', () => {
    const pathOf = (name: string) => `/v1/trusted-issuers/${encodeURIComponent(`https://${name}.example`)}`
    const former = { renamed_from: 'https://old.example' }
    beforeAll(async () => {
      expect((await send('PUT', pathOf('old'), document)).status).toBe(201)
    })
    afterAll(async () => {
      for (const name of ['old', 'new']) await send('DELETE', pathOf(name))
    })

    test.each([
      ['nobody says so', {}],
      ['another name is said', { renamed_from: 'https://else.example' }],
      ['it is its own former name', { renamed_from: 'https://new.example' }],
      ['the prefix is only alike', { ...former, subject_prefix: 'idp:x' }],
      ['the prefix is only the beginning', { ...former, subject_prefix: 'idp' }],
    ])('are refused where %s', async (_, change) => {
      expect((await send('PUT', pathOf('new'), { ...document, ...change })).status).toBe(409)
    })

    test('have the same subjects, and each may be written again', async () => {
      expect((await send('PUT', pathOf('new'), { ...document, ...former })).status).toBe(201)
      expect((await send('PUT', pathOf('old'), document)).status).toBe(200)
      expect((await send('PUT', pathOf('third'), { ...document, ...former })).status).toBe(409)
      expect((await send('PUT', pathOf('new'), document)).status).toBe(409)
      expect((await send('DELETE', pathOf('old'))).status).toBe(204)
      expect((await send('PUT', pathOf('new'), { ...document, ...former })).status).toBe(200)
    })
  })

  describe('with a transmitter', () => {
    const ssf = {
      delivery: 'poll',
      authorization: {
        token_endpoint: 'https://idp.example/token',
        client_id: 'us',
        client_secret: 'our-secret-at-the-idp',
      },
    }
    const { client_secret: _, ...shown } = ssf.authorization

    test('show it without its secret, which stays when it is left out', async () => {
      expect((await send('PUT', path, { ...document, ssf })).body.ssf).toEqual({ ...ssf, authorization: shown })
      expect((await send('PUT', path, { ...document, ssf: { ...ssf, authorization: shown } })).status).toBe(200)
      expect(JSON.stringify((await send('GET', path)).body)).not.toContain('our-secret')
      const stored = await served.sql.query('select document::text as text from trusted_issuer')
      expect(JSON.stringify(stored)).not.toContain('our-secret')
    })

    test.each([
      ['another token endpoint', { ...shown, token_endpoint: 'https://evil.example/token' }],
      ['another client', { ...shown, client_id: 'other' }],
      ['a static token', {}],
    ])('do not send the stored secret to %s', async (_name, authorization) => {
      await send('PUT', path, { ...document, ssf })
      expect((await send('PUT', path, { ...document, ssf: { ...ssf, authorization } })).status).toBe(400)
      expect(
        (
          await send('PUT', path, {
            ...document,
            ssf: { ...ssf, issuer: 'https://evil.example', authorization: shown },
          })
        ).status,
      ).toBe(400)
    })

    test.each([
      ['no delivery', { delivery: undefined }],
      ['an unknown delivery', { delivery: 'mail' }],
      ['no authorization', { authorization: undefined }],
      ['a short secret', { authorization: { token: 'short' } }],
      ['a token and a client', { authorization: { ...ssf.authorization, token: 'a-token-that-is-long-enough' } }],
      [
        'a client without a token endpoint',
        { authorization: { client_id: 'us', client_secret: 'our-secret-at-the-idp' } },
      ],
      ['a token endpoint without a client', { authorization: { token_endpoint: 'https://idp.example/token' } }],
      ['an issuer that is no URL', { issuer: 'idp' }],
      ['metadata by another protocol', { metadata_uri: 'file:///etc/passwd' }],
      ['metadata with a password', { metadata_uri: 'https://a:b@idp.example/' }],
      ['a word for silence that does not exist', { on_silence: 'panic' }],
      ['no events', { events: [] }],
      ['an unknown member', { retries: 5 }],
    ])('are refused with %s', async (_name, change) => {
      const { status, body } = await send('PUT', path, { ...document, ssf: { ...ssf, ...change } })
      expect([status, body.code]).toEqual([400, 'request_invalid'])
    })

    test('have no state before a stream is made, and none without a transmitter', async () => {
      await send('PUT', path, { ...document, ssf })
      expect((await send('GET', `${path}/signals`)).status).toBe(404)
      await send('PUT', path, document)
      expect((await send('GET', `${path}/signals`)).status).toBe(404)
      await send('DELETE', path)
    })
  })

  test('cannot be ourselves', async () => {
    const own = `/v1/trusted-issuers/${encodeURIComponent('https://id.example.test')}`
    expect((await send('PUT', own, document)).status).toBe(409)
  })
})
