/** Growth of what reads a message to an MCP server, and the answers of services. */

import { demandsOfMcp } from '../../../sidecar/mcp/demands.ts'
import { listFilter } from '../../../sidecar/mcp/lists.ts'
import { createSessionSeal } from '../../../sidecar/mcp/sessions.ts'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import { wholeRequest } from '../../../sidecar/request/whole-request.ts'
import { requiredScopes } from '../../../sidecar/routes/checks.ts'
import { exactPlace, valueText, withoutMember } from '../../../sidecar/routes/json-body.ts'
import { ANYBODY, parseUriPattern } from '../../../sidecar/routes/mcp-rules.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { filled, refusable, requestWith } from './inputs.ts'
import { ORIGIN } from './request-rows.ts'

const BODY_MOST = 65_536
const RUNS = [
  'sidecar/routes/mcp-rules.ts:resourceRule',
  'sidecar/routes/json-body.ts:findValue',
  'sidecar/routes/json-body.ts:writtenAt',
  'sidecar/routes/json-body.ts:refuseRepeated',
  'sidecar/routes/json-body.ts:skipSpace',
  'sidecar/routes/json-body.ts:endOfValue',
  'sidecar/routes/json-body.ts:eachMember',
]
const uri = parseUriPattern('crm://{a}-{b}-{c}', 0)
if (typeof uri === 'string') throw new TypeError(uri)
const RULE = { check: ANYBODY, listed: ANYBODY, some: null, stepUp: null }
const rules = { tools: { ok: RULE }, prompts: {}, resources: [{ ...RULE, template: 'crm://{a}-{b}-{c}', uri }] }
const owner = { issuer: 'i', subject: 's', clientId: 'c', organization: null }
const sessions = createSessionSeal([Buffer.alloc(32)])

function asked(body: string, fields: readonly string[] = []): unknown {
  const length = ['content-type', 'application/json', 'content-length', `${body.length}`]
  const request = readInbound(requestWith([...length, ...fields], { method: 'POST', target: '/mcp' }), ORIGIN)
  return demandsOfMcp({ request, rules, base: ANYBODY, owner, sessions, body: Buffer.from(body) })
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok"'
const BODIES: { readonly [name: string]: readonly [before: string, unit: string, after: string] } = {
  'members of a message': ['{', '"a":1,', '"z":1}'],
  'parameters of a call': [`${CALL},`, '"a":1,', '"z":1}}'],
  'levels of a call': [`${CALL},"x":`, '[', '1}}'],
  'blanks of a call': [CALL, ' ', '}}'],
  'a text of a call': [`${CALL},"x":"`, '\\"', '"}}'],
  'backslashes of a call': [`${CALL},"x":"`, '\\\\', '"}}'],
  'a URI': ['{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"crm://', 'a-', '"}}'],
}

export const MCP_ROWS: readonly Growth[] = [
  ...Object.entries(BODIES).map(([name, [before, unit, after]]) => ({
    name,
    most: BODY_MOST,
    runs: RUNS,
    at: (size: number) => {
      const body = filled(size, unit, { before, after })
      return () => refusable(() => asked(body))
    },
  })),
  {
    name: 'checks that name scopes',
    runs: ['sidecar/routes/checks.ts:requiredScopes'],
    most: 256,
    at: (size: number) => {
      const of = Array.from({ length: size }, (_, at) => ({ kind: 'scope', name: `s${at}` }) as const)
      return () => requiredScopes({ kind: 'all', of })
    },
  },
  {
    name: 'members of an answer',
    runs: [
      'sidecar/routes/json-body.ts:exactPlace',
      'sidecar/routes/json-body.ts:withoutMember',
      'sidecar/routes/json-body.ts:valueText',
    ],
    most: BODY_MOST,
    at: (size: number) => {
      const text = filled(size, '"a":1,', { before: '{', after: '"total":1}' })
      return () =>
        refusable(() => [exactPlace(withoutMember(text, ['total']), ['a', 'b']), valueText(`"${size}"`, 'x')])
    },
  },
  {
    name: 'fields of a request for a list',
    runs: ['sidecar/request/whole-request.ts:wholeRequest', 'sidecar/request/inbound.ts:withFields'],
    most: 96,
    at: (size: number) => {
      const fields = Array.from({ length: size }, (_, at) => [`a${at}`, 'b']).flat()
      const request = readInbound(requestWith(fields), ORIGIN)
      return () => wholeRequest(request, false)
    },
  },
  {
    name: 'tools of a list',
    runs: [
      'sidecar/routes/json-body.ts:itemsAt',
      'sidecar/routes/json-body.ts:withoutItems',
      'sidecar/routes/json-body.ts:setMember',
    ],
    most: BODY_MOST,
    at: (size: number) => {
      const text = filled(size, '{"name":"x"},', { before: '{"result":{"tools":[', after: '{"name":"ok"}]}}' })
      const list = { of: 'tools', member: 'tools', key: 'name' } as const
      const { edit } = listFilter({ list, isStateless: true, keep: (names) => names.map((name) => name === 'ok') })
      return () => edit(text)
    },
  },
]
