/** What comes from clients and gateways: targets, header fields, and the questions of Envoy. */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { CheckRequestSchema } from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { readCheck, UnfitGateway } from '../../../sidecar/doors/check-request.ts'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { RequestError } from '../../../sidecar/request/errors.ts'
import { type InboundRequest, readInbound } from '../../../sidecar/request/inbound.ts'
import { parseTarget, type RequestTarget } from '../../../sidecar/request/target.ts'
import { checkOf } from '../../sidecar/doors/door-harness.ts'
import { randomTarget, seeded } from '../../sidecar/fuzz/targets.ts'
import { must, type Parser, readOrRefused } from '../play.ts'

const isRefusal = (error: unknown): boolean => error instanceof RequestError
const isError = (error: unknown): boolean => error instanceof Error
const isUnfit = (error: unknown): boolean => error instanceof UnfitGateway
const ORIGIN = { address: '203.0.113.9', host: null, fault: null }
const ODD_CHARACTER = /[^\x21-\x7e]/

/** Some versions of the URL standard write `^` as its triplet, which is the same name. */
const caretsIn = (path: string): string => path.replaceAll('%5E', '^')

/** Another reader of URLs sees the same path, and no segment leads anywhere else. */
function judgeTarget(target: RequestTarget): void {
  const { raw, path, segments, query } = target
  must(!ODD_CHARACTER.test(raw) && !/[#"<>]/.test(raw), 'the target holds a character that it cannot have')
  must(!path.includes('\\'), 'the path holds a backslash')
  must(raw === (query === null ? path : `${path}?${query}`), 'the target is not its path and query')
  must(caretsIn(new URL(`http://app.test${raw}`).pathname) === caretsIn(path), 'a URL parser reads another path')
  const decoded = path.slice(1).split('/').map(decodeURIComponent)
  must(JSON.stringify(decoded) === JSON.stringify(segments), 'the segments are not those of the path')
  for (const piece of segments.flatMap((segment) => segment.split('/')))
    must(!['.', '..'].includes(piece.trim()), 'a segment is dots')
  must(target.encodedSlash === /%2f/i.test(path), 'an encoded slash is not noticed')
  must(target.semicolon === /;|%3b/i.test(path), 'a semicolon is not noticed')
  must(
    JSON.stringify(parseTarget(raw)) === JSON.stringify({ ...target, authority: null }),
    'what is forwarded is read otherwise',
  )
}

const random = seeded(17)
const target: Parser = {
  name: 'target',
  seeds: ['/', '/invoices/42?page=1', 'http://app.test/a/b', ...goodTargets(60)],
  words: ['%2f', '%2e', '..', '//', ';', '%00', '%25', '?', 'http://', '%c3%a9', '..;a', '%5c', '%20..'],
  read(text) {
    const found = readOrRefused(() => parseTarget(text), isRefusal)
    if (found !== undefined) judgeTarget(found)
    return found !== undefined
  },
}

function goodTargets(count: number): readonly string[] {
  const drawn = Array.from({ length: 40 * count }, () => randomTarget(random))
  return drawn.filter((text) => readOrRefused(() => parseTarget(text), isRefusal) !== undefined).slice(0, count)
}

/** By rules of our own, which take less than RFC 9112 does. */
function judgeRequest({ raw, names, bodyBytes, connectionListed, host, authorization }: InboundRequest): void {
  const fields = raw.flatMap((name, at) =>
    at % 2 === 0 ? [{ name: name.toLowerCase(), value: raw[at + 1] ?? '' }] : [],
  )
  const valuesOf = (wanted: string) => fields.filter(({ name }) => name === wanted).map(({ value }) => value)
  must(names.length === fields.length, 'a field has no folded name')
  must(valuesOf('host').length === 1 && /^[a-z0-9_.:[\]-]+$/.test(host.hostname), 'the host is not one host')
  must(valuesOf('content-length').length + valuesOf('transfer-encoding').length <= 1, 'the body has two framings')
  for (const length of valuesOf('content-length'))
    must(/^\d{1,16}$/.test(length) && bodyBytes === Number(length), 'the length is not the one that is written')
  for (const name of ['host', 'authorization', 'dpop', 'cookie', 'content-length'])
    must(!connectionListed.has(name), `${name} is dropped because Connection lists it`)
  must(authorization.length === valuesOf('authorization').length, 'a field Authorization is not seen')
}

const linesAsRaw = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':')
    return [colon < 0 ? line : line.slice(0, colon), colon < 0 ? '' : line.slice(colon + 1).trim()]
  })

const headers: Parser = {
  name: 'headers',
  seeds: [
    'Host: app.test\nAccept: */*',
    'Host: app.test:8443\nAuthorization: Bearer abc\nContent-Length: 12\nConnection: keep-alive, X-Hop\nX-Hop: 1',
    'Host: [::1]\nTransfer-Encoding: chunked\nExpect: 100-continue\nDPoP: a.b.c',
  ],
  words: [
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'chunked',
    'Connection',
    'Authorization',
    'close',
    '\n',
    'content_length',
    '0x10',
    '+1',
    'DPoP',
    ', ',
  ],
  read(text) {
    const client = syntheticRequest({ method: 'POST', target: '/', raw: linesAsRaw(text) })
    const found = readOrRefused(() => readInbound(client, { origin: ORIGIN, targetCharsMax: 8_192 }), isRefusal)
    if (found !== undefined) judgeRequest(found)
    return found !== undefined
  },
}

const asText = (request: Parameters<typeof checkOf>[0], encode: boolean): string =>
  Buffer.from(toBinary(CheckRequestSchema, checkOf(request, encode))).toString('latin1')
const PROFILE = { profile: 'envoy', body: true } as const

/** Each character is a byte of the message. */
const extAuthz: Parser = {
  name: 'ext_authz',
  seeds: [
    asText({}, true),
    asText({ method: 'POST', target: '/a?b=c', fields: [['authorization', 'Bearer abc']], body: 'hello' }, true),
    asText(
      {
        target: '/a%20b',
        fields: [
          ['cookie', 'a=b'],
          ['x-list', '1'],
        ],
      },
      true,
    ),
  ],
  words: [':path', ':authority', 'host', 'GET', 'HTTP/2', '\x0a\x01', '\x12\x02', '\xff\xff\xff\x7f', '\x00'],
  read(text) {
    // The library has no error of its own for bytes that are no message.
    const message = readOrRefused(() => fromBinary(CheckRequestSchema, Buffer.from(text, 'latin1')), isError)
    if (message === undefined) return false
    const held = readOrRefused(() => readCheck(message, PROFILE), isUnfit)
    if (held === undefined) return false
    const found = readOrRefused(
      () => readInbound(held.client, { origin: held.origin, targetCharsMax: 8_192 }),
      isRefusal,
    )
    if (found === undefined) return false
    judgeTarget(found.target)
    judgeRequest(found)
    for (const part of found.raw) must(!/[\0\r\n]/.test(part), 'a field holds the end of a line')
    return true
  },
}

export const REQUESTS: readonly Parser[] = [target, headers, extAuthz]
