/** Prints a server of nginx that asks the door about each request, and gives the door's answer to a refused client. */

import { exactNames } from '../../http/cleared.ts'
import {
  AUTHORIZE_PATH,
  answerFields,
  CALLER_FIELD,
  DOOR_FIELDS,
  REFUSAL_FIELD,
  REFUSED_PATH,
} from '../../http/door-fields.ts'
import { type ConfigFile, CREDENTIALS, type DoorAccess, type GatewayPlan, written } from '../plan.ts'

const ASK = '/_portcullis'
const REFUSED = '/_portcullis_refused'
const DOOR = 'portcullis_door'
const FIELDS = DOOR_FIELDS.nginx
/** Fields of the question, with the variables in which nginx keeps the client's request as it came. */
const ORIGINAL = [
  [FIELDS.method, '$request_method'],
  [FIELDS.target, '$request_uri'],
  [FIELDS.host, '$http_host'],
  [FIELDS.scheme, '$scheme'],
  [FIELDS.client, '$remote_addr'],
] as const

export function nginxConfig(plan: GatewayPlan): readonly ConfigFile[] {
  const scheme = plan.service.tls ? 'https' : 'http'
  const lines = [
    '# For the http block of nginx, such as /etc/nginx/conf.d/portcullis.conf.',
    `upstream ${DOOR} {`,
    `    server ${plan.door.kind === 'unix' ? `unix:${plan.door.path}` : address(plan.door.at)};`,
    '    keepalive 16;',
    '}',
    '',
    'server {',
    `    listen ${address(plan.listen)};`,
    `    server_name ${plan.hosts.join(' ')};`,
    '    # nginx drops fields whose names have underscores or are not valid.',
    '    underscores_in_headers off;',
    '    ignore_invalid_headers on;',
    '    merge_slashes off;',
    '    proxy_http_version 1.1;',
    '    proxy_headers_hash_max_size 2048;',
    '    proxy_headers_hash_bucket_size 128;',
    '',
    '    # Asks the door. The target that the door reads is the one that came, never $uri.',
    ...block(`location = ${ASK}`, [
      'internal;',
      `proxy_pass ${doorUrl(plan.door, AUTHORIZE_PATH)};`,
      ...doorLines(plan.door),
      ...ORIGINAL.map(([name, value]) => setHeader(name, value)),
    ]),
    '',
    '    # Gives the client the answer with which the door refused.',
    ...block(`location = ${REFUSED}`, [
      'internal;',
      `proxy_pass ${doorUrl(plan.door, REFUSED_PATH)};`,
      'proxy_method GET;',
      ...doorLines(plan.door),
      setHeader(REFUSAL_FIELD, '$portcullis_refusal'),
    ]),
    '',
    ...block('location /', [
      `auth_request ${ASK};`,
      `auth_request_set $portcullis_refusal $upstream_http_${variable(REFUSAL_FIELD)};`,
      ...[...answerFields(plan.headers.identity), ...tokenFields(plan)].map(
        (name) => `auth_request_set $portcullis_${variable(name)} $upstream_http_${variable(name)};`,
      ),
      `error_page 403 = ${REFUSED};`,
      '',
      ...(plan.service.http2 ? OVER_HTTP1 : []),
      `proxy_pass ${scheme}://${address(plan.service)};`,
      ...(plan.service.tls ? upstreamTls(plan.service.host) : []),
      ...(plan.bodyBytesMax === null ? ['proxy_request_buffering off;'] : []),
      setHeader('host', '$http_host'),
      setHeader('connection', '""'),
      '# The door names the bearer; a field that it leaves empty is not sent.',
      ...[...answerFields(plan.headers.identity), ...tokenFields(plan)].map((name) =>
        setHeader(name, `$portcullis_${variable(name)}`),
      ),
      setHeader('x-forwarded-for', '$remote_addr'),
      setHeader('x-forwarded-host', '$http_host'),
      setHeader('x-forwarded-proto', '$scheme'),
      '# Fields that services believe. The door refuses a request with another one of their kind.',
      ...exactNames(plan.headers)
        .filter((name) => !tokenFields(plan).includes(name))
        .map((name) => setHeader(name, '""')),
    ]),
    '}',
    '',
  ]
  return [{ name: 'portcullis.conf', text: lines.join('\n') }]
}

const OVER_HTTP1 = [
  '# nginx speaks HTTP/1.1 to this service. If it serves gRPC only: grpc_pass, and grpc_set_header for each proxy_set_header.',
]

const tokenFields = ({ forwardToken }: GatewayPlan): readonly string[] => (forwardToken ? CREDENTIALS : [])

function doorLines(door: DoorAccess): string[] {
  return [
    'proxy_pass_request_body off;',
    setHeader('host', DOOR),
    setHeader('content-length', '""'),
    setHeader('connection', '""'),
    'proxy_connect_timeout 1s;',
    'proxy_read_timeout 2s;',
    'proxy_next_upstream off;',
    ...(door.kind === 'unix' || door.secretFile === null
      ? []
      : [
          `# This file says: proxy_set_header ${written(CALLER_FIELD)} "the secret of the door";`,
          `include ${door.secretFile};`,
        ]),
    ...(door.kind === 'tls'
      ? [
          ...(door.client === null
            ? []
            : [`proxy_ssl_certificate ${door.client.cert};`, `proxy_ssl_certificate_key ${door.client.key};`]),
          `proxy_ssl_trusted_certificate ${door.ca};`,
          'proxy_ssl_verify on;',
          `proxy_ssl_name ${door.at.host};`,
          'proxy_ssl_server_name on;',
        ]
      : []),
  ]
}

const upstreamTls = (host: string): string[] => [
  'proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;',
  'proxy_ssl_verify on;',
  `proxy_ssl_name ${host};`,
  'proxy_ssl_server_name on;',
]

const doorUrl = (door: DoorAccess, path: string): string => `${door.kind === 'tls' ? 'https' : 'http'}://${DOOR}${path}`
const address = ({ host, port }: { host: string; port: number }): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
const variable = (name: string): string => name.replaceAll('-', '_')
const setHeader = (name: string, value: string): string => `proxy_set_header ${written(name)} ${value};`
const block = (head: string, lines: readonly string[]): string[] => [
  `    ${head} {`,
  ...lines.map((line) => (line === '' ? '' : `        ${line}`)),
  '    }',
]
