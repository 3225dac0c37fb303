/** Requests whose paths are spelled differently, but which a gateway or a service could read as requests for a guarded path. */

/** A path and fields as they are sent. `plain`: the usual spelling. */
export type Spelling = {
  readonly plain: boolean
  readonly target: string
  readonly fields: readonly (readonly [name: string, value: string])[]
}
export type Spelled = {
  readonly host: string
  /** The guarded path with its made-up id, such as `/invoices/probe-1`. */
  readonly path: string
  /** Public paths, and their fixed beginnings, such as `/public`. */
  readonly open: readonly { readonly path: string; readonly start: string }[]
}

const AFTER = [
  '/',
  '//',
  '/.',
  '/%2e',
  '/x/..',
  '/x/%2e%2e',
  '.',
  '%20',
  '%09',
  '%0a',
  '%00',
  '%00.html',
  ';',
  ';x=1',
].concat(['%3b', '?', '?x=/', '#x', '%23', '%3f', '.json', '~', '*', '..;/', '\\', '%5c', '%2f', '\xa0'])
const BEFORE = [
  '/',
  '//',
  '/.',
  '/%2e',
  '/;',
  '/..',
  '/%2e%2e',
  '/x/..',
  '/x/%2e%2e',
  '/x/.%2e',
  '/x/..;',
  '/x/..%3b',
].concat([
  '/x/%252e%252e',
  '/x/%c0%ae%c0%ae',
  '/x/%u002e%u002e',
  '/x/%EF%BC%8E%EF%BC%8E',
  '/x%2f..',
  '/x\\..',
  '/x/..%00',
  '/x/%e3%80%80..',
  '/x/%20..',
  '/x/..%20',
])
/** Texts that replace the slashes after the first segment. */
const BETWEEN = [
  '//',
  '/./',
  '/%2e/',
  '/x/../',
  '/x/%2e%2e/',
  '/x/..%2f',
  '/;/',
  '/%20/',
  '%2f',
  '%2F',
  '%252f',
  '%c0%af',
].concat(['%EF%BC%8F', '\\', '%5c', '%255c', '/%00/', ';x=1/', '%20/', '%09/'])
/** Texts that lead from a public path upwards. */
const UP = [
  '/..',
  '/%2e%2e',
  '/.%2e',
  '/..;',
  '/..%3b',
  '%2f..',
  '/..%2f',
  '/%2e%2e%2f',
  '\\..',
  '%5c..',
  '/..%5c',
].concat(['/%252e%252e', '/%c0%ae%c0%ae', '/%20..', '/..%20', '/..%00'])

/** Fields by which a client pretends to be the gateway or another user. */
const FORGED: readonly (readonly [name: string, value: string])[] = [
  ...['x-forwarded-method', 'x-original-method', 'x-http-method-override', 'x-http-method', 'x-method-override'].map(
    (name) => [name, 'OPTIONS'] as const,
  ),
  ...['x-forwarded-for', 'x-real-ip', 'x-original-for', 'x-client-ip', 'true-client-ip'].map(
    (name) => [name, '127.0.0.1'] as const,
  ),
  ...['x-forwarded-host', 'x-original-host', 'x-host', 'x-forwarded-server'].map(
    (name) => [name, 'localhost'] as const,
  ),
  ...['x-auth-subject', 'X_Auth_Subject', 'x-portcullis-caller', 'x-portcullis-refusal'].map(
    (name) => [name, 'admin'] as const,
  ),
  ['connection', 'close, authorization, x-original-uri, x-forwarded-uri, x-portcullis-caller, host'],
  ['upgrade', 'websocket'],
  ['upgrade', 'h2c'],
  ['authorization', 'Basic YWRtaW46YWRtaW4='],
  ['cookie', 'session=admin'],
]
const TARGET_FIELDS = ['x-forwarded-uri', 'x-original-uri', 'x-original-url', 'x-rewrite-url', 'x-envoy-original-path']

/** The usual spelling comes first. */
export function spellingsOf({ host, path, open }: Spelled): readonly Spelling[] {
  const targets = [...pathsOf(path), ...open.flatMap(({ start }) => upwards(start, path))]
  const absolute = [`http://${host}${path}`, `http://other.invalid${path}`, `http://${host}@other.invalid${path}`]
  const target = open[0]?.path ?? '/'
  const fields = [...FORGED, ...TARGET_FIELDS.map((name) => [name, target] as const)]
  const hosts = [host.toUpperCase(), `${host}.`, `${host}:443`, `${host}:1`].map((name) => ['host', name] as const)
  return [
    { plain: true, target: path, fields: [] },
    ...[...new Set([...targets, ...absolute])].map((target) => ({ plain: false, target, fields: [] })),
    ...[...fields, ...hosts].map((field) => ({ plain: false, target: path, fields: [field] })),
  ]
}

function pathsOf(path: string): readonly string[] {
  const [first = '', ...others] = path.slice(1).split('/')
  const rest = others.length === 0 ? '' : `/${others.join('/')}`
  const firsts = [escaped(first, 1), escaped(first, first.length), escaped(first, 1).replace('%', '%25')]
    .concat([first.toUpperCase(), capital(first), wide(first), `${first};x=1`, `${first}%20`])
    .filter((text) => text !== first)
  return [
    ...AFTER.map((end) => path + end),
    ...BEFORE.map((start) => start + path),
    ...['/%2f', '/\\', '/%5c', '/%252f', '/%20', '/%09', '/%00'].map((start) => start + path.slice(1)),
    ...firsts.map((text) => `/${text}${rest}`),
    ...(others.length === 0 ? [] : BETWEEN.map((slash) => `/${[first, ...others].join(slash)}`)),
  ]
}

/** Paths that climb as many steps as the public path has segments, and one more. */
function upwards(start: string, path: string): readonly string[] {
  const depth = start.split('/').length - 1
  return UP.flatMap((up) => [up.repeat(depth), up.repeat(depth + 1)].map((steps) => `${start}${steps}${path}`))
}

const escaped = (text: string, count: number): string =>
  text.slice(0, count).replaceAll(/[\x21-\x7e]/g, (one) => `%${one.charCodeAt(0).toString(16)}`) + text.slice(count)
const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)
/** The text with its first letter in full-width form, which some servers fold. */
const wide = (text: string): string =>
  /^[a-z]/.test(text) ? encodeURIComponent(String.fromCharCode(text.charCodeAt(0) + 0xfee0)) + text.slice(1) : text
