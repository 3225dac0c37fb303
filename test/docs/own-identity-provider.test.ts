/** The blocks of docs/own-identity-provider.md are valid, and do what the page says for tokens as these products issue them. */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { localKeys } from '../../pdp/shared/token/keys.ts'
import { createTokenVerifier } from '../../pdp/shared/token/verify.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { createIssuer, type Issuer } from '../support/peers/issuer.ts'

const PAGE = readFileSync(new URL('../../docs/own-identity-provider.md', import.meta.url), 'utf8')
const BLOCKS = new Map(
  [...PAGE.matchAll(/^```yaml\n# issuer: (.+)\n([\s\S]*?)```$/gm)].map(([, name = '', text = '']) => [name, text]),
)

function entryOf(name: string) {
  const { file, issues } = parseRouteFile(`portcullis: v1
resource: https://app.example.com
issuers:
${(BLOCKS.get(name) ?? '').replace(/^/gm, '  ').trimEnd()}
upstream: http://127.0.0.1:3000
pdp: {address: "127.0.0.1:9090", insecure: true}
routes:
  GET /me: signed_in
`)
  expect(issues).toEqual([])
  const [entry] = file?.issuers ?? []
  if (entry?.external == null) throw new Error(`there is no block of ${name}`)
  return { ...entry, external: entry.external }
}

let keys: Issuer
beforeAll(async () => {
  keys = await createIssuer({ issuer: 'https://unused.test', audience: 'unused', clock: Date.now })
})

/** What these products put into an access token, besides times; undefined drops what a token of ours would have. */
const TOKENS: readonly [name: string, header: object, claims: object, expected: object][] = [
  [
    'Keycloak',
    { typ: 'JWT' },
    {
      aud: ['orders-api', 'account'],
      azp: 'web',
      client_id: undefined,
      typ: 'Bearer',
      sub: 'f1c9a2d4',
      scope: 'openid',
      groups: ['/sales'],
      realm_access: { roles: ['clerk'] },
    },
    { subject: '~kc:f1c9a2d4', clientId: '~kc:web', groups: ['~kc:group:/sales', '~kc:role:clerk'] },
  ],
  [
    'Auth0',
    { typ: 'JWT' },
    {
      aud: ['https://app.example.com', 'https://acme.eu.auth0.com/userinfo'],
      azp: 'Ab1',
      client_id: undefined,
      jti: undefined,
      sub: 'auth0|5f',
      org_id: 'org_Jx2kCq8nPq1',
      'https://app.example.com/roles': ['editor'],
    },
    { subject: '~auth0:auth0|5f', organization: 'acme', groups: ['~auth0:role:editor'] },
  ],
  [
    'Entra ID',
    { typ: 'JWT' },
    {
      aud: '11111111-2222-3333-4444-555555555555',
      azp: '9999',
      client_id: undefined,
      jti: undefined,
      scope: undefined,
      scp: 'Orders.Read',
      oid: '0000-66f3',
      tid: '72f988bf-86f1-41af-91ab-2d7cd011db47',
      ver: '2.0',
      groups: ['0a1b'],
    },
    { subject: '~entra:0000-66f3', groups: ['~entra:group:0a1b'], scopes: new Set(['Orders.Read']) },
  ],
  [
    'Okta',
    { typ: undefined },
    { aud: 'api://orders', cid: '0oa', client_id: undefined, scope: undefined, scp: ['orders'], groups: ['Everyone'] },
    { subject: '~okta:alice', clientId: '~okta:0oa', groups: ['~okta:group:Everyone'] },
  ],
  ['RFC 9068', {}, { aud: 'https://app.example.com' }, { subject: '~login:alice', clientId: '~login:c1' }],
]

describe('the block of', () => {
  test.each(TOKENS)(
    '%s accepts an access token, and no ID token of the same client',
    async (name, header, claims, expected) => {
      const { issuer, external } = entryOf(name)
      const trusted = { issuer, external, keys: localKeys(() => keys.jwks.keys), algorithms: ['RS256'] as const }
      const { verify } = createTokenVerifier({
        issuers: [trusted],
        audience: 'https://app.example.com',
        clock: Date.now,
      })
      const read = await verify(await keys.token({ iss: issuer, org: undefined, ...claims }, { ...header }))
      expect(read).toMatchObject({ issuer, organization: 'acme', ...expected })
      const idToken = {
        iss: issuer,
        org: undefined,
        ...claims,
        scope: undefined,
        scp: undefined,
        typ: undefined,
        nonce: 'n',
      }
      const asAccessToken = verify(await keys.token(idToken, { typ: 'JWT' }))
      await expect(Promise.resolve(asAccessToken)).rejects.toMatchObject({ code: 'token_invalid' })
    },
  )

  test('opaque tokens asks the issuer', () => {
    const { introspection } = entryOf('opaque tokens')
    expect(introspection).toEqual({
      endpoint: 'https://login.example.com/oauth2/introspect',
      clientId: 'portcullis',
      clientSecretFile: '/run/secrets/introspection',
    })
  })

  test('each provider has its test', () => {
    expect([...BLOCKS.keys()].sort()).toEqual([...TOKENS.map(([name]) => name), 'opaque tokens'].sort())
  })
})

test('the PDP is told of Keycloak what its block says', () => {
  const [, body = ''] = /-d '(\{[\s\S]*?\n\})'/.exec(PAGE) ?? []
  const { jwks_uri: _uri, algorithms: _algorithms, resource, ...document } = JSON.parse(body)
  expect(document).toEqual(entryOf('Keycloak').external)
  expect(resource).toBe('https://app.example.com')
})
