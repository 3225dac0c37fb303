/** What the PDP reads of somebody whose token is not known yet: bodies, tokens, proofs, messages, filters and fields. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { words } from '../../../pdp/identity/html/words/words.ts'
import { readForm } from '../../../pdp/identity/oauth/forms.ts'
import { documentHost, readDocument } from '../../../pdp/identity/provider/client-documents.ts'
import { decodeStreamRequest } from '../../../pdp/server/serve/grpc/questions.ts'
import { isNoneMatch } from '../../../pdp/server/serve/http/conditions.ts'
import { parseJson, parseUtf8 } from '../../../pdp/server/serve/http/json.ts'
import { browserAnswer } from '../../../pdp/server/serve/http/public-pages.ts'
import { guardBody } from '../../../pdp/server/serve/http/text-guard.ts'
import { parseFilter, parsePatchPath } from '../../../pdp/server/serve/scim/filter.ts'
import { plainSaid, standardSaid } from '../../../pdp/shared/base/client-address.ts'
import { constantAnswer, isKnown } from '../../../pdp/shared/process/http/constant-answer.ts'
import { parseAuthorization } from '../../../pdp/shared/token/authorization.ts'
import { readProof } from '../../../pdp/shared/token/dpop.ts'
import { parseJws } from '../../../pdp/shared/token/jws.ts'
import { filled, refusable } from '../../sidecar/growth/inputs.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { BASE_ROWS } from './base-rows.ts'

const BODY = 262_144
const HEAD = 16_384
const TOKEN = 16_384
const PROOF = 8_192
const MESSAGE = 1_048_576
const FILTER = 2_000
const FORM = 8_192

type Text = { readonly unit: string; readonly before?: string; readonly after?: string }
type Reader = { readonly most: number; readonly runs: readonly string[]; readonly read: (text: string) => unknown }

/** One row for each text that the reader gets. */
const rows = (reader: Reader, texts: { readonly [name: string]: Text }): readonly Growth[] =>
  Object.entries(texts).map(([name, { unit, before = '', after = '' }]) => ({
    name,
    runs: reader.runs,
    most: reader.most,
    at: (size) => {
      const text = filled(size, unit, { before, after })
      return () => refusable(() => reader.read(text))
    },
  }))

const JSON_BODIES = rows(
  {
    // A quarter of what is read: at the limit, collecting garbage on a busy machine is more work than the reading.
    most: BODY / 4,
    runs: [
      ...['pdp/server/serve/http/json.ts:parseUtf8', 'pdp/server/serve/http/json.ts:parseJson'],
      'pdp/server/serve/http/text-guard.ts:guardBody',
    ],
    read: (text) => guardBody(parseJson(parseUtf8(Buffer.from(text)))),
  },
  {
    'a JSON body of numbers': { unit: '1,', before: '[', after: '1]' },
    'a JSON body of objects': { unit: '{"a":"b"},', before: '[', after: '{}]' },
    'a JSON body of one long text': { unit: 'a', before: '["', after: '"]' },
    'a JSON body of escapes': { unit: '\\u0041', before: '["', after: '"]' },
    'a JSON body of texts that cannot be stored': { unit: '"\\u0000",', before: '[', after: '""]' },
    'a JSON body of half a pair of surrogates each': { unit: '"\\ud800",', before: '[', after: '""]' },
    'a JSON body that opens arrays only': { unit: '[' },
    'a JSON body that opens objects only': { unit: '{"a":' },
    'a JSON body of blanks': { unit: ' \t\n' },
    'a JSON body of a name again and again': { unit: '"a":1,', before: '{', after: '"a":1}' },
    'a JSON body of backslashes': { unit: '\\', before: '"' },
  },
)
const NESTED: Growth = {
  name: 'a JSON body of arrays within arrays',
  runs: ['pdp/server/serve/http/text-guard.ts:guardBody'],
  most: BODY,
  at: (size) => {
    const text = `${'['.repeat(size / 2)}"\\u0000"${']'.repeat(size / 2)}`
    return () => refusable(() => guardBody(parseJson(text)))
  },
}
const TOKENS = [
  ...rows(
    { most: TOKEN, runs: ['pdp/shared/token/jws.ts:parseJws'], read: (text) => parseJws(text, TOKEN) },
    {
      'a token of dots': { unit: '.' },
      'a token with one long part': { unit: 'A', before: 'e30.', after: '.AA' },
      'a token with a long signature': { unit: 'A', before: 'e30.e30.' },
      'a token of what is no base64url': { unit: '=', before: 'e30.e30.' },
    },
  ),
  ...rows(
    { most: PROOF, runs: ['pdp/shared/token/dpop.ts:readProof'], read: (text) => readProof([text]) },
    { 'a proof of dots': { unit: '.' }, 'a proof with one long part': { unit: 'A', before: 'e30.', after: '.AA' } },
  ),
  ...rows(
    {
      most: HEAD,
      runs: ['pdp/shared/token/authorization.ts:parseAuthorization'],
      read: (text) => parseAuthorization([text]),
    },
    {
      'an Authorization field of blanks': { unit: ' ', before: 'Bearer' },
      'an Authorization field of a long token': { unit: 'a', before: 'Bearer ' },
      'an Authorization field of schemes': { unit: 'Bearer ' },
      'an Authorization field of commas': { unit: 'Bearer a, ' },
    },
  ),
]
const MESSAGES: readonly Growth[] = [
  ['a message of empty questions', [0x0a, 0x00]],
  ['a message of unknown fields', [0x78, 0x01]],
  ['a message of groups that never end', [0x0b]],
  ['a message of numbers without an end', [0xff]],
  ['a message of lengths past its end', [0x0a, 0x7f]],
].map(([name, unit]) => ({
  name: String(name),
  runs: ['pdp/server/serve/grpc/questions.ts:decodeStreamRequest'],
  most: MESSAGE,
  at: (size: number) => {
    const bytes = Buffer.alloc(size, Buffer.from(unit as number[]))
    return () => refusable(() => decodeStreamRequest(bytes))
  },
}))
const SCIM = [
  ...rows(
    { most: FILTER, runs: ['pdp/server/serve/scim/filter.ts:parseFilter'], read: parseFilter },
    {
      'a filter of brackets': { unit: '(' },
      'a filter of negations': { unit: 'not (' },
      'a filter of terms': { unit: 'a eq 1 and ', after: 'a eq 1' },
      'a filter of blanks': { unit: ' ', before: 'a eq' },
      'a filter of backslashes': { unit: '\\', before: 'a eq "' },
      'a filter of dots': { unit: 'a.' },
    },
  ),
  ...rows(
    { most: FILTER, runs: ['pdp/server/serve/scim/filter.ts:parsePatchPath'], read: parsePatchPath },
    { 'a path of brackets': { unit: '[', before: 'emails' }, 'a path of colons': { unit: 'a:' } },
  ),
]
const CONSTANT = constantAnswer({})
const FIELDS = [
  ...rows(
    {
      most: HEAD,
      runs: ['pdp/identity/html/words/words.ts:words'],
      read: (text) => words({ url: `/?ui_locales=${text}`, headers: { 'accept-language': text } }),
    },
    {
      'a field of commas for languages': { unit: ',' },
      'a field of blanks for languages': { unit: ' ', before: 'x;q=', after: '!' },
      'a field of weights for languages': { unit: ';q=0.1' },
    },
  ),
  ...rows(
    {
      most: HEAD,
      runs: ['pdp/server/serve/http/conditions.ts:isNoneMatch', 'pdp/shared/process/http/constant-answer.ts:isKnown'],
      read: (text) => [isKnown(CONSTANT, text), isNoneMatch({ 'if-none-match': text }, CONSTANT.tag)],
    },
    {
      'a list of tags': { unit: '"a", ', after: '"a"' },
      'a list of quotes': { unit: '"' },
      'a list of blanks': { unit: ' ', before: '"a"', after: '!' },
      'a list of blanks and commas': { unit: ' ,', before: '"a"', after: '!' },
    },
  ),
  ...rows(
    {
      most: HEAD,
      runs: ['pdp/shared/base/client-address.ts:standardSaid', 'pdp/shared/base/client-address.ts:plainSaid'],
      read: (text) => [
        refusable(() => standardSaid(['forwarded', text])),
        refusable(() => plainSaid(['x-forwarded-for', text])),
      ],
    },
    {
      'a Forwarded field of proxies': { unit: 'for=1.1.1.1,', after: 'for=1.1.1.1' },
      'a Forwarded field of quotes': { unit: '"' },
      'a Forwarded field of backslashes': { unit: '\\', before: 'for="' },
      'a Forwarded field of semicolons': { unit: ';' },
      'a Forwarded field of blanks': { unit: ' ', before: 'for=a', after: '!' },
    },
  ),
  ...rows(
    {
      most: HEAD,
      runs: ['pdp/server/serve/http/public-pages.ts:browserAnswer'],
      read: (text) => browserAnswer(() => ({ status: 400, page: { headers: {}, html: '' } }), text),
    },
    {
      'a head of Accept fields': { unit: '\r\naccept: ' },
      'a head of blanks': { unit: ' ', before: '\r\naccept:', after: 'text/html' },
      'a head of line ends': { unit: '\r\n' },
    },
  ),
]
const CLIENT = 'https://a.example/client'
const DOCUMENTS = rows(
  {
    most: HEAD,
    runs: ['pdp/identity/provider/client-documents.ts:readDocument'],
    read: (text) => readDocument(CLIENT, text),
  },
  {
    'a document of a client with many redirect URIs': {
      unit: '"http://127.0.0.1/",',
      before: `{"client_id":"${CLIENT}","redirect_uris":[`,
      after: '"http://127.0.0.1/"]}',
    },
    'a document of a client with a long redirect URI': {
      unit: '/..',
      before: `{"client_id":"${CLIENT}","redirect_uris":["https://a.example`,
      after: '"]}',
    },
    'a document of a client with a name of blanks': {
      unit: ' ',
      before: `{"client_id":"${CLIENT}","redirect_uris":["https://a.example/"],"client_name":"`,
      after: '"}',
    },
    'a document of a client that opens objects only': { unit: '{"a":' },
  },
)
const CLIENT_IDS = rows(
  { most: HEAD, runs: ['pdp/identity/provider/client-documents.ts:documentHost'], read: documentHost },
  { 'a client id of dots': { unit: '/..', before: 'https://a.example' } },
)
const FORMS: readonly Growth[] = ['a=b&', '&', '=', '%', '%41', '+'].map((unit) => ({
  name: `a form of ${unit}`,
  runs: ['pdp/identity/oauth/forms.ts:readForm'],
  most: FORM,
  at: (size) => {
    const bytes = Buffer.from(filled(size, unit))
    return async () => {
      const req = new IncomingMessage(new Socket())
      req.push(bytes)
      req.push(null)
      return String(await readForm(req))
    }
  },
}))

export const ROWS: readonly Growth[] = [
  ...[...JSON_BODIES, NESTED, ...TOKENS, ...MESSAGES, ...SCIM, ...FIELDS, ...FORMS, ...DOCUMENTS, ...CLIENT_IDS],
  ...BASE_ROWS,
]
