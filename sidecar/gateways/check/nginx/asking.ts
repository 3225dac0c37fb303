/** What is unsafe in the location of nginx that asks the door. */
import { CALLER_FIELD, DOOR_FIELDS } from '../../../http/door-fields.ts'
import { written } from '../../plan.ts'
import type { Directive } from '../../read/nginx.ts'
import { at, type Finding } from '../finding.ts'
import { type Context, effective, own, settingOf, type Upstreams } from './context.ts'

const FIELDS = DOOR_FIELDS.nginx
const ORIGINAL: readonly (readonly [name: string, values: RegExp, value: string])[] = [
  [FIELDS.method, /^\$request_method$/, '$request_method'],
  [FIELDS.target, /^\$request_uri$/, '$request_uri'],
  [FIELDS.host, /^\$http_host$/, '$http_host'],
  [FIELDS.scheme, /^(\$scheme|https?)$/, '$scheme'],
  [FIELDS.client, /^\$remote_addr$/, '$remote_addr'],
]

export function checkAsking(context: Context, upstreams: Upstreams): readonly Finding[] {
  const { here } = context
  const pass = own(context, ['proxy_pass'])
  if (pass === null) return [at(here)('skips_question', 'this location asks no door', 'set proxy_pass to the door')]
  const fields = effective(context, 'proxy_set_header')
  const valuesOfField = (name: string): readonly string[] =>
    fields.filter(({ args }) => args[0]?.toLowerCase() === name).map(({ args }) => args.slice(1).join(' '))
  const valueOfField = (name: string): string | null => valuesOfField(name).at(-1) ?? null
  const original = ORIGINAL.flatMap(([name, values, value]) => {
    const all = valuesOfField(name)
    const said = all.find((value) => !values.test(value)) ?? all[0] ?? null
    if (said !== null && values.test(said)) return []
    const message =
      said === null
        ? `a client can name its own ${written(name)}, which the door judges`
        : `${written(name)} is not what the client sent`
    return [
      at(here)(said === null ? 'forgeable' : 'other_bytes', message, `proxy_set_header ${written(name)} ${value}`),
    ]
  })
  return [
    ...original,
    ...checkSeen(context, fields),
    ...checkTarget(context, pass.args[0] ?? ''),
    ...checkCaller(context, { url: pass.args[0] ?? '', upstreams, secret: valueOfField(CALLER_FIELD) }),
    ...checkAnswers(context),
    ...(valueOfField('content-length') === '' && settingOf(context, 'proxy_pass_request_body') === 'off'
      ? []
      : [
          at(here)(
            'other_bytes',
            'the question is framed by the length of a body that it does not have',
            'proxy_pass_request_body off; proxy_set_header Content-Length ""',
          ),
        ]),
  ]
}

/** Of the question itself, and what nginx adds to it. */
const OF_QUESTION: readonly string[] = [
  ...FIELDS.ofGateway,
  CALLER_FIELD,
  ...'host connection content-length accept-encoding via x-request-id traceparent tracestate'.split(' '),
]

/** The door must see the fields that the service gets: it judges them, and refuses what nobody would remove. */
function checkSeen(context: Context, fields: readonly Directive[]): readonly Finding[] {
  const hidden = effective(context, 'proxy_pass_request_headers').filter(({ args }) => args[0] === 'off')
  const changed = fields.filter(({ args: [name = '', value = ''] }) => {
    const field = name.toLowerCase()
    return !OF_QUESTION.includes(field) && value !== `$http_${field.replaceAll('-', '_')}`
  })
  return [
    ...hidden.map((one) =>
      at(one)(
        'other_bytes',
        'the door sees some fields only, and cannot refuse the others',
        'remove proxy_pass_request_headers',
      ),
    ),
    ...changed.map((one) =>
      at(one)('other_bytes', `the door gets another ${one.args[0]} than the client sent`, `remove ${one.args[0]} here`),
    ),
  ]
}

function checkTarget(context: Context, url: string): readonly Finding[] {
  const { here } = context
  return [
    ...(/\$/.test(url)
      ? [
          at(here)(
            'forgeable',
            'the target of the question is made from variables',
            'write the address of the door out',
          ),
        ]
      : []),
    ...(own(context, ['internal']) === null
      ? [at(here)('forgeable', 'clients can ask the door themselves', 'add internal')]
      : []),
  ]
}

function checkCaller(
  context: Context,
  { url, upstreams, secret }: { readonly url: string; readonly upstreams: Upstreams; readonly secret: string | null },
): readonly Finding[] {
  const { here } = context
  const name = /^https?:\/\/([^/]*)/.exec(url)?.[1] ?? ''
  const servers = upstreams.get(name) ?? [name]
  const isSocket = servers.every((server) => server.startsWith('unix:'))
  const proves = isSocket || (secret !== null && secret !== '') || settingOf(context, 'proxy_ssl_certificate') !== null
  return [
    ...(proves
      ? []
      : [
          at(here)(
            'forgeable',
            'nginx does not say who it is to the door, which then answers nobody, or everybody',
            'use a unix socket, proxy_ssl_certificate, or proxy_set_header X-Portcullis-Caller',
          ),
        ]),
    ...(url.startsWith('https:') && settingOf(context, 'proxy_ssl_verify') !== 'on'
      ? [at(here)('forgeable', 'the certificate of the door is not verified', 'set proxy_ssl_verify on')]
      : []),
  ]
}

/** Where nginx only forwards it has no such answer of its own, and leaves those of the door as they are. */
const OF_DOOR = ['401', '404']

/** Only what the door answers may decide. */
function checkAnswers(context: Context): readonly Finding[] {
  const turned = effective(context, 'error_page').filter(
    ({ args }) =>
      args.some((arg) => /^=(2\d\d)?$/.test(arg)) && args.some((arg) => /^\d+$/.test(arg) && !OF_DOOR.includes(arg)),
  )
  const cache = effective(context, 'proxy_cache').filter(({ args }) => args[0] !== 'off')
  const returned = own(context, ['return'])
  const intercepts = effective(context, 'proxy_intercept_errors').filter(({ args }) => args[0] === 'on')
  return [
    ...turned.map((page) =>
      at(page)('fails_open', 'a failure of the door may become a success', 'keep error_page out of this location'),
    ),
    ...cache.map((one) =>
      at(one)('skips_question', 'an earlier answer of the door counts again', 'set proxy_cache off'),
    ),
    ...intercepts.map((one) =>
      at(one)('fails_open', 'nginx replaces the answers of the door', 'set proxy_intercept_errors off'),
    ),
    ...(returned === null
      ? []
      : [at(returned)('skips_question', 'the door is not asked, because return comes first', 'remove return')]),
  ]
}
