import { beforeAll, describe, expect, test } from 'vitest'
import { createHeaderRules, downstreamFields, firstValue } from '../../../sidecar/http/fields.ts'
import { foldName } from '../../../sidecar/http/folding.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { routeFile } from '../support/harness.ts'

/** More than are remembered, of the kind that an attacker would send first. */
function fillMemory(passes: (name: string) => boolean): void {
  for (let at = 0; at < 3_000; at += 1) {
    foldName(`X-Filler-${at}`)
    passes(`X-Filler-${at}`)
  }
}

describe.each(['before', 'after'])('names, %s as many were seen as are remembered', (when) => {
  const { passes } = createHeaderRules({ strip: ['X_Own', 'x-acme_*'], pass: ['X_Tenant', 'x-access-token'] })
  beforeAll(() => {
    if (when === 'after') fillMemory(passes)
  })
  const long = 'a'.repeat(100)

  test.each([
    ['X-Auth-Subject', 'x-auth-subject'],
    ['x_auth_subject', 'x-auth-subject'],
    ['X.AUTH!SUBJECT', 'x-auth-subject'],
    [`X_Auth_${long}`, `x-auth-${long}`],
    ['Content_Length', 'content-length'],
    ['x-\xe9', 'x--'],
    ['__proto__', '--proto--'],
    ['constructor', 'constructor'],
    ['', ''],
  ])('%s folds to the same twice', (name, folded) => {
    expect([foldName(name), foldName(name)]).toEqual([folded, folded])
  })

  test.each([
    'Authorization',
    'x-forwarded-for',
    'x-auth-subject',
    `x-auth-${long}`,
    'host',
    'transfer-encoding',
    'X-Own',
    'x_own',
    'X-Acme-Anything',
    'x-acme-',
    'SCRIPT_NAME',
    'script-name',
    'x_tenants',
    'X-Role_',
    'x.role',
    'x~role',
    'x-role\xe9',
    `x_${long}`,
    '',
    '__proto__',
    'Tailscale-User-Login',
  ])('%s does not pass, asked once or twice', (name) => {
    expect([passes(name), passes(name)]).toEqual([false, false])
  })

  test.each([
    ...[
      'accept',
      'x-own-2',
      'X-Acme',
      `x-${long}`,
      'constructor',
      'Cookie',
      'traceparent',
      'X-Amzn-Trace-Id',
      'X-User-Agent',
    ],
    ...['x_tenant', 'X_TENANT', 'X-Access-Token', 'Content-Type', 'X-API-Key', 'Grpc-Timeout', 'Sec-WebSocket-Key'],
  ])('%s passes, asked once or twice', (name) => {
    expect([passes(name), passes(name)]).toEqual([true, true])
  })

  test('what one configuration strips or passes is not what another does', () => {
    const other = createHeaderRules({ strip: [], pass: [] })
    expect([other.passes('x-own'), other.passes('x_tenant'), other.passes('x-access-token')]).toEqual([
      true,
      false,
      false,
    ])
  })
})

describe('pass_headers and strip_headers', () => {
  const issues = (extra: string): string =>
    parseRouteFile(routeFile('GET /a: public', { extra }))
      .issues.map(({ message }) => message)
      .join('\n')

  test.each([
    ['pass_headers: [SCRIPT_NAME]', 'is the same as script-name to many servers'],
    ['pass_headers: [X_Auth_Subject]', 'is set by the sidecar'],
    ['pass_headers: [x-forwarded-for]', 'is set by the sidecar'],
    ['pass_headers: [Authorization]', 'is set by the sidecar'],
    ['pass_headers: [transfer_encoding]', 'is set by the sidecar'],
    ['pass_headers: [x-own]\nstrip_headers: [x-own]', 'is also in strip_headers'],
    ['pass_headers: [x_own_a]\nstrip_headers: [X-Own_*]', 'is also in strip_headers'],
    ['pass_headers: ["x acme"]', 'is not a header name'],
    ['pass_headers: []', 'must have at least one item'],
    ['strip_headers: ["*"]', 'is not a header name or a prefix'],
    ['strip_headers: ["x-*-y"]', 'is not a header name or a prefix'],
  ])('%s: %s', (extra, message) => {
    expect(issues(extra)).toContain(message)
  })

  test('a check may rest on a header that the file lets pass', () => {
    const file = (extra: string): string => routeFile('GET /a: {equals: {header.x-scope-orgid: acme}}', { extra })
    const told = (extra: string): string => JSON.stringify(parseRouteFile(file(extra)).issues)
    expect(told('')).toContain('is removed from every request')
    expect(told('pass_headers: [X-Scope-OrgID]')).not.toContain('is removed')
  })
})

describe('fields of an answer', () => {
  test('pass without those of the connection, and those that it lists', () => {
    const raw = ['Connection', 'X-Hop, close', 'X-Hop', '1', 'CONNECTION', 'x-other', 'X-Other', '2', 'X-Kept', '3']
    expect(downstreamFields([...raw, 'Keep-Alive', 'timeout=5', 'Upgrade', 'h2c'])).toEqual(['X-Kept', '3'])
  })

  test('are found by name in any case, the first of them, and not by a part or a value', () => {
    const raw = ['X-A', 'content-length', 'Content-Length', '5', 'content-length', '6', 'odd']
    expect([firstValue(raw, 'content-length'), firstValue(raw, 'x-a')]).toEqual(['5', 'content-length'])
    for (const name of ['content', 'content-length-', 'odd', '']) expect(firstValue(raw, name)).toBeNull()
  })
})
