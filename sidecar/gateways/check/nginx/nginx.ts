/** What is unsafe in a configuration of nginx that asks by auth_request. */

import type { Directive } from '../../read/nginx.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { checkAsking } from './asking.ts'
import { type Context, effective, own, settingOf, type Upstreams } from './context.ts'
import { checkForwarding } from './forwarding.ts'
import { checkKnown, isCode } from './known-directives.ts'

const PASSES = ['proxy_pass', 'grpc_pass', 'fastcgi_pass', 'uwsgi_pass', 'scgi_pass', 'memcached_pass']
const ANSWERS = ['return', 'empty_gif', 'stub_status']
const ACME = '/.well-known/acme-challenge'

export function checkNginx(directives: readonly Directive[]): readonly Finding[] {
  const everything = directives.flatMap(all)
  const http = directives.flatMap((directive) => (directive.name === 'http' ? (directive.block ?? []) : [directive]))
  const servers = http.filter(({ name, block }) => name === 'server' && block !== null)
  const places = servers.length > 0 ? servers : http.some(({ name }) => name === 'location') ? [asServer(http)] : []
  const upstreams: Upstreams = new Map(
    http
      .filter(({ name }) => name === 'upstream')
      .map(({ args, block }) => [
        args[0] ?? '',
        (block ?? []).filter((one) => one.name === 'server').map((one) => one.args[0] ?? ''),
      ]),
  )
  const [first] = directives
  if (places.length === 0 || first === undefined)
    return first === undefined ? [] : [at(first)('unseen', 'there is no server here', 'check the file that has it')]
  const outer = servers.length > 0 ? [http] : []
  return [
    ...everything.flatMap(checkAnywhere),
    ...checkKnown(directives),
    ...directives.filter(({ name }) => name === 'stream').flatMap(checkStream),
    ...places.flatMap((server) => checkServer(server, outer, upstreams)),
  ]
}

/** Of a file that others include: what stands around it is not here. */
const asServer = (block: readonly Directive[]): Directive => ({
  ...{ name: 'snippet', args: [], block },
  ...{ file: block[0]?.file ?? '', line: block[0]?.line ?? 1 },
})

const all = (directive: Directive): readonly Directive[] => [directive, ...(directive.block ?? []).flatMap(all)]

function checkServer(
  server: Directive,
  outer: readonly (readonly Directive[])[],
  upstreams: Upstreams,
): readonly Finding[] {
  const locations = contexts(server, outer)
  const targets = new Set(
    locations.flatMap((context) => effective(context, 'auth_request').map(({ args }) => args[0] ?? '')),
  )
  targets.delete('off')
  const isAsking = ({ here }: Context): boolean => here.name === 'location' && targets.has(here.args.at(-1) ?? '')
  const asking = locations.filter(isAsking)
  const doors = new Set(asking.map((context) => hostOf(own(context, PASSES))))
  const ofDoor = (context: Context): boolean =>
    own(context, ['internal']) !== null && doors.has(hostOf(own(context, PASSES)))
  const missing = [...targets].filter((target) => !asking.some(({ here }) => here.args.at(-1) === target))
  return [
    ...missing.map((target) =>
      at(server)('unseen', `there is no location ${target}, which auth_request names`, `add location = ${target}`),
    ),
    ...asking.flatMap((context) => checkAsking(context, upstreams)),
    ...locations
      .filter((context) => !isAsking(context) && !ofDoor(context))
      .flatMap((context) => checkLocation(context)),
  ]
}

const hostOf = (pass: Directive | null): string =>
  /^\w+:\/\/(unix:[^:]*|[^/]*)/.exec(pass?.args[0] ?? '')?.[1] ?? 'nothing'

const INNER = ['location', 'if', 'limit_except']

/** The server itself, its locations, and what is nested in them. */
function contexts(here: Directive, outer: readonly (readonly Directive[])[]): readonly Context[] {
  const around = [...outer, here.block ?? []]
  const inner = (here.block ?? []).filter(({ name, block }) => INNER.includes(name) && block !== null)
  return [{ here, around }, ...inner.flatMap((directive) => contexts(directive, around))]
}

function checkLocation(context: Context): readonly Finding[] {
  const { here } = context
  const pass = own(context, PASSES)
  const isStatic = pass === null && servesFiles(context) && own(context, ANSWERS) === null && !refusesAll(context)
  if (pass === null && (!isStatic || here.args.at(-1)?.startsWith(ACME) === true)) return []
  const asks = effective(context, 'auth_request')[0]
  const any = effective(context, 'satisfy').find(({ args }) => args[0] === 'any')
  const path = here.name === 'server' ? 'the server' : `${here.name} ${here.args.join(' ')}`
  return [
    ...(asks === undefined || asks.args[0] === 'off'
      ? [
          at(asks ?? here)(
            'skips_question',
            `nobody is asked about the requests of ${path}`,
            'set auth_request as in location /, and say public in the route file',
          ),
        ]
      : []),
    ...(any === undefined
      ? []
      : [
          at(any)(
            'skips_question',
            'another access rule may let a request pass that the door refuses',
            'set satisfy all',
          ),
        ]),
    ...(pass === null ? [] : checkForwarding(context, pass)),
  ]
}

/** A location without a handler does. So does a server whose locations leave paths over. */
function servesFiles(context: Context): boolean {
  const { here } = context
  if (here.name !== 'server') return here.name === 'location'
  const locations = (here.block ?? []).filter(({ name }) => name === 'location')
  if (settingOf(context, 'ssl_reject_handshake') === 'on' || locations.some(isWhole)) return false
  return locations.length === 0 || settingOf(context, 'root') !== null
}

const isWhole = ({ args }: Directive): boolean => /^(\^~ )?\/$|^~\*? \^?(\/|\.\*?)?$/.test(args.join(' '))

/** The first rule that matches counts, so that everything before `deny all` may pass. */
const refusesAll = (context: Context): boolean => {
  const open = effective(context, 'allow', 'deny').findIndex(({ name }) => name === 'allow')
  const closed = effective(context, 'allow', 'deny').findIndex(({ name, args }) => name === 'deny' && args[0] === 'all')
  return closed >= 0 && (open < 0 || closed < open) && settingOf(context, 'satisfy') !== 'any'
}

const FLAGS: readonly (readonly [name: string, value: string, message: string, fix: string])[] = [
  ['underscores_in_headers', 'on', 'fields with underscores pass, which many services read as X-Auth-Subject', 'off'],
  ['ignore_invalid_headers', 'off', 'fields with odd names pass, which some services read as X-Auth-Subject', 'on'],
]

function checkAnywhere(directive: Directive): readonly Finding[] {
  const { name, args } = directive
  const here = at(directive)
  const flag = FLAGS.find(([known, value]) => known === name && args[0] === value)
  if (flag !== undefined) return [here('forgeable', flag[2], `set ${name} ${flag[3]}`)]
  if ((name === 'ssi' && args[0] === 'on') || name === 'add_before_body' || name === 'add_after_body')
    return [here('skips_question', `${name} fetches parts that nobody is asked about`, `remove ${name}`)]
  if (isCode(name))
    return [here('unseen', `${name} may answer, or change the request, by code of its own`, 'judge it by hand')]
  if (name === 'set_real_ip_from' && isEverybody(args[0] ?? ''))
    return [here('forgeable', 'every client can say that it has another address', 'name your proxies')]
  return []
}

function checkStream(stream: Directive): readonly Finding[] {
  return all(stream)
    .filter(({ name }) => name === 'proxy_pass' || name === 'pass')
    .map((pass) =>
      at(pass)('skips_question', 'connections are passed on unread: nobody is asked', 'use a server of http'),
    )
}
