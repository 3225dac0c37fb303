/** What a door believes that its gateway takes away, beside what the printed configuration takes away. */
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createRemoval } from '../../../sidecar/doors/removed-fields.ts'
import { FRAMING_FIELDS } from '../../../sidecar/doors/service-fields.ts'
import { exactNames } from '../../../sidecar/http/cleared.ts'
import { HTTP_PROFILES, type HttpProfile } from '../../../sidecar/http/door-fields.ts'
import { createHeaderRules, type HeaderNames } from '../../../sidecar/http/fields.ts'
import {
  COMMONLY_TRUSTED_FIELDS,
  CONNECTION_FIELDS,
  CREDENTIAL_FIELDS,
  OWN_FIELDS,
} from '../../../sidecar/http/stripped-fields.ts'
import { printed } from './printed.ts'

const HEADERS: { readonly [what: string]: HeaderNames } = {
  'no headers section': { strip: [], pass: [] },
  'names of its own': { strip: ['x-acme-*', 'x-tenant'], pass: ['cf-ray'] },
  'members of prefixes that pass': { strip: [], pass: ['x-forwarded-anything', 'remote-anything', 'forwarded-x'] },
}
/** Traefik itself removes them from clients that it does not trust, and sets some (pkg/middlewares/forwardedheaders). */
const OF_TRAEFIK_ITSELF = 'proto for host port server uri method prefix tls-client-cert tls-client-cert-info'
  .split(' ')
  .map((name) => `x-forwarded-${name}`)
/** Caddy's reverse_proxy sets these for the service. */
const OF_CADDY_ITSELF = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']

/** Whether the printed configuration removes, or writes, a client's field of this name. */
const CLEARED: { readonly [name in HttpProfile]: (text: string) => (name: string) => boolean } = {
  nginx(text) {
    const [, location = ''] = text.split(' location / {')
    const set = [...location.matchAll(/proxy_set_header (\S+) /g)].map(([, name = '']) => name.toLowerCase())
    // underscores_in_headers off and ignore_invalid_headers on.
    return (name) => set.includes(name) || !/^[a-z0-9-]+$/.test(name)
  },
  traefik(text) {
    const { forwardAuth } = parse(text).http.middlewares.portcullis
    const copied = forwardAuth.authResponseHeaders.map((name: string) => name.toLowerCase())
    const pattern = new RegExp(forwardAuth.authResponseHeadersRegex.replace(/^\(\?i\)/, ''), 'i')
    return (name) =>
      copied.includes(name) || pattern.test(name) || OF_TRAEFIK_ITSELF.includes(name) || name === 'x-real-ip'
  },
  caddy(text) {
    const removed = [...text.matchAll(/(?:request_header|header_up) -(\S+)/g)].map(([, name = '']) =>
      name.toLowerCase(),
    )
    const copied = (/copy_headers (.*)/.exec(text)?.[1] ?? '').toLowerCase().split(' ')
    const matches = (pattern: string, name: string): boolean => {
      const inner = pattern.replaceAll('*', '')
      if (!pattern.endsWith('*')) return name === pattern
      return pattern.startsWith('*') ? name.includes(inner) : name.startsWith(inner)
    }
    return (name) =>
      removed.some((pattern) => matches(pattern, name)) || copied.includes(name) || OF_CADDY_ITSELF.includes(name)
  },
}

/** Exact names, members of the prefixes, and spellings that some services read as one of ours. */
const namesFor = (headers: HeaderNames): readonly string[] =>
  [
    ...OWN_FIELDS,
    ...CREDENTIAL_FIELDS,
    ...CONNECTION_FIELDS,
    ...exactNames(headers),
    ...[...COMMONLY_TRUSTED_FIELDS, ...headers.strip, ...headers.pass].flatMap((name) =>
      name.endsWith('*') ? [`${name.slice(0, -1)}anything`] : [name, `${name}x`],
    ),
    ...OWN_FIELDS.flatMap((name) => [name.replaceAll('-', '_'), name.replaceAll('-', '.')]),
  ].filter((name) => !FRAMING_FIELDS.has(name))

const CASES = HTTP_PROFILES.flatMap((profile) => Object.keys(HEADERS).map((what) => [profile, what] as const))

test.each(CASES)('the door of %s believes of no field that it is taken away and stays, with %s', (profile, what) => {
  const headers = HEADERS[what] ?? { strip: [], pass: [] }
  const believes = createRemoval(profile)(headers)
  const clears = CLEARED[profile](configured(profile, headers))
  const { passes } = createHeaderRules(headers)
  for (const name of namesFor(headers).filter((one) => !passes(one))) {
    if (believes(name)) expect({ name, cleared: clears(name) }).toEqual({ name, cleared: true })
    // Where the gateway takes it away after the question, the door must not refuse it.
    else if (profile === 'traefik') expect({ name, cleared: clears(name) }).toEqual({ name, cleared: false })
    else if (profile === 'nginx')
      expect({ name, cleared: clears(name) && /^[a-z0-9-]+$/.test(name) }).toEqual({ name, cleared: false })
  }
})

test.each(HTTP_PROFILES)('the configuration of %s takes away no field that pass_headers names', (profile) => {
  for (const headers of Object.values(HEADERS))
    for (const name of headers.pass)
      expect({ name, cleared: CLEARED[profile](configured(profile, headers))(name) }).toEqual({ name, cleared: false })
})

test.each(HTTP_PROFILES)('%s forwards no Upgrade, after which nobody would be asked', (profile) => {
  const clears = CLEARED[profile](configured(profile, { strip: [], pass: [] }))
  expect(['upgrade', 'http2-settings'].map(clears)).toEqual([true, true])
})

test.each(HTTP_PROFILES)(
  'Forwarded of a client does not stop its request at %s, and does not reach the service',
  (profile) => {
    const headers = HEADERS['no headers section'] ?? { strip: [], pass: [] }
    expect(CLEARED[profile](configured(profile, headers))('forwarded')).toBe(true)
    // Caddy takes it away before it asks.
    expect(createRemoval(profile)(headers)('forwarded')).toBe(profile !== 'caddy')
  },
)

function configured(profile: HttpProfile, { strip, pass }: HeaderNames): string {
  const list = (name: string, items: readonly string[]): string =>
    items.length === 0 ? '' : `${name}: ${JSON.stringify(items)}\n`
  const lines = list('strip_headers', strip) + list('pass_headers', pass)
  return (
    printed(profile, { top: lines })
      .map(({ text }) => text)
      .at(-1) ?? ''
  )
}
