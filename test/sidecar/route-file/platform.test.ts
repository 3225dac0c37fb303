/** Route files beside what their platform says: the PDP and the issuers. */
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { platformIssues } from '../../../sidecar/route-file/words/platform.ts'

const ROUTES = `portcullis: v1
resource: https://invoices.example.com
upstream: http://127.0.0.1:8080
routes:
  GET /invoices/{id}: viewer invoice:{id}
`
const PDP = { address: 'pdp.portcullis.svc:9090', token_file: '/var/run/token' }
const ISSUERS = [{ issuer: 'https://id.example.com' }]
const PLATFORM = JSON.stringify({ pdp: PDP, issuers: ISSUERS })
const OTHER_ISSUER = `${ROUTES}issuers: [{issuer: https://evil.example.com}]\n`
const OTHER_PDP = `${ROUTES}pdp: {address: "evil.example.com:9090"}\n`
const overridable = (...names: readonly string[]): string =>
  JSON.stringify({ pdp: PDP, issuers: ISSUERS, overridable: names })
const messages = (source: string, platform: string | null): readonly string[] =>
  parseRouteFile(source, platform).issues.map(({ message }) => message)

describe('a route file with routes only', () => {
  test('takes the PDP and the issuers of its platform', () => {
    expect(parseRouteFile(ROUTES, PLATFORM).file).toMatchObject({
      issuers: [{ issuer: 'https://id.example.com', algorithms: ['RS256'] }],
      pdp: { addresses: ['pdp.portcullis.svc:9090'], tokenFile: '/var/run/token', insecure: false },
    })
  })
  test('needs both itself without a platform', () => {
    expect(messages(ROUTES, null)).toEqual(['the route file needs issuers', 'the route file needs pdp'])
  })
  test('needs itself what its platform does not say', () => {
    expect(messages(ROUTES, JSON.stringify({ issuers: ISSUERS }))).toEqual(['the route file needs pdp'])
  })
  test('gives an external issuer of the platform its own resource as audience', () => {
    const external = { subject_prefix: 'idp:', organizations: ['acme'] }
    const platform = JSON.stringify({ pdp: PDP, issuers: [{ issuer: 'https://idp.example.com', external }] })
    expect(parseRouteFile(ROUTES, platform).file?.issuers[0]?.external?.audience).toBe('https://invoices.example.com')
  })
})

describe('a route file that says itself what its platform says', () => {
  test.each([
    ['issuers', OTHER_ISSUER],
    ['pdp', OTHER_PDP],
    ['issuers', `${ROUTES}issuers: [{issuer: https://id.example.com}]\n`],
  ])('is refused: %s', (name, source) => {
    expect(messages(source, PLATFORM)).toEqual([
      `${name} is for the platform to say: remove it here. Its operator may allow it (overridable)`,
    ])
    expect(parseRouteFile(source, PLATFORM).file).toBeNull()
  })
  test('counts alone where the operator allows it', () => {
    const { file } = parseRouteFile(OTHER_ISSUER, overridable('issuers'))
    expect(file?.issuers.map(({ issuer }) => issuer)).toEqual(['https://evil.example.com'])
    expect(file?.pdp.addresses).toEqual(['pdp.portcullis.svc:9090'])
  })
  test('is still refused for the other of the two', () => {
    expect(messages(OTHER_PDP, overridable('issuers'))).toHaveLength(1)
    expect(messages(OTHER_ISSUER, overridable('pdp'))).toHaveLength(1)
  })
})

describe('mistakes of the platform', () => {
  test.each([
    ['{"pdp": {"address": "pdp"}}', 'host:port'],
    ['{"issuers": []}', 'at least one item'],
    ['{"issuers": [{"issuer": "http://id.example.com"}]}', 'https URL'],
    ['{"routes": {}}', 'unknown key "routes"'],
    ['{"overridable": ["routes"]}', 'issuers or pdp'],
    ['[]', 'must be a map'],
    ['{"pdp": ', '1:'],
  ])('are found by themselves: %s', (platform, part) => {
    expect(platformIssues(platform).join()).toContain(part)
    // No file is good beside them.
    expect(parseRouteFile(ROUTES, platform).file).toBeNull()
  })
  test('are told to who checks a route file', () => {
    const platform = JSON.stringify({ pdp: { address: 'pdp' }, issuers: ISSUERS })
    expect(messages(ROUTES, platform)).toEqual(['the settings of the platform: 1:19: "pdp" must be host:port'])
  })
  test('are none in good settings', () => {
    expect(platformIssues(PLATFORM)).toEqual([])
    expect(platformIssues(overridable('issuers', 'pdp'))).toEqual([])
  })
})
