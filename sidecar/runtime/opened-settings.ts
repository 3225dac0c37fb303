/** Finds what a changed route file trusts or forwards, outside of its routes, that the file before did not. */
import { isDeepStrictEqual } from 'node:util'
import { addsAuthority, NO_PEM, type Pem } from '../config/certificates.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { Cors } from '../http/cors.ts'
import { type UpstreamEntry, upstreamsOf } from '../http/upstream-entry.ts'
import type { DoorEntry } from '../route-file/doors.ts'
import type { IssuerEntry } from '../route-file/peers.ts'
import type { RouteFile } from '../route-file/route-file.ts'

type Read = Pick<LoadedConfig, 'file' | 'certificates'>

/** One sentence for each changed setting that protects less. It begins with the setting's name. */
export function openedSettings(before: Read, now: Read): readonly string[] {
  const { file: former } = before
  const { file: next } = now
  const added = (
    setting: string,
    read: (file: RouteFile) => readonly string[],
    means: (names: string) => string,
  ): readonly string[] => listed(setting, without(read(next), read(former)), means)
  return [
    ...added(
      'resource',
      ({ resources }) => resources,
      (names) => `tokens for ${names} are accepted now`,
    ),
    ...added(
      'issuers',
      issuersOf,
      (names) => `${names} ${names.includes(', ') ? 'are' : 'is'} trusted now, or trusted in another way than before`,
    ),
    ...added(
      'hosts',
      ({ hosts }) => hosts,
      (names) => `${names} were answered with 421 before`,
    ),
    ...added(
      'cors',
      ({ cors }) => pagesOf(cors),
      (names) => `pages of ${names} may read answers now`,
    ),
    ...added('trusted_proxies', networksOf, (names) => `forwarding fields of ${names} are believed now`),
    ...added(
      'pass_headers',
      ({ headers }) => headers.pass,
      (names) => `the service gets ${names} of the client now`,
    ),
    ...listed(
      'strip_headers',
      without(former.headers.strip, next.headers.strip),
      (names) => `the service gets ${names} of the client now`,
    ),
    ...listed(
      'identity_headers',
      without(identityOf(former), identityOf(next)),
      (names) => `${names} may come from the client now, or say something else of it`,
    ),
    ...added('doors', doorsOf, (names) => `gateways may ask at ${names}, or in another way than before`),
    ...(next.proxyProtocol && !former.proxyProtocol
      ? ['proxy_protocol: the addresses that trusted_proxies write before a connection are believed now']
      : []),
    ...(former.proofNonces && !next.proofNonces ? ['dpop: proofs need no nonce any more'] : []),
    ...tlsIssues(before, now),
    ...peerIssues(before, now),
    ...signInIssues(former, next),
  ]
}

const without = (names: readonly string[], known: readonly string[]): readonly string[] =>
  names.filter((name) => !known.includes(name))

const listed = (setting: string, names: readonly string[], means: (names: string) => string): readonly string[] =>
  names.length === 0 ? [] : [`${setting}: ${means([...new Set(names.map(shown))].join(', '))}`]

/** Separates a name for messages from further text, which is only compared. */
const SEPARATOR = '\n'
const shown = (name: string): string => name.split(SEPARATOR, 1)[0] ?? ''
const named = (name: string, entry: object): string => `${name}${SEPARATOR}${JSON.stringify(entry)}`

const issuersOf = ({ issuers }: RouteFile): readonly string[] =>
  issuers.map((entry: IssuerEntry) => named(entry.issuer, entry))

const identityOf = ({ headers, assertion }: RouteFile): readonly string[] =>
  (headers.identity ?? []).map((field) => named(field.name, field.parts === null ? { ...assertion } : field))

const networksOf = ({ trustedProxies }: RouteFile): readonly string[] =>
  trustedProxies.map(({ address, bits }) => `${address}/${bits}`)

const doorsOf = ({ doors }: RouteFile): readonly string[] =>
  doors.map((door: DoorEntry) => {
    const { listen } = door
    return named('path' in listen ? listen.path : `${listen.host}:${listen.port}`, door)
  })

/** True if more authorities are trusted, even in a file of the same name. `ca` null: those of the system. */
const trustsMore = (before: Pem, now: Pem): boolean =>
  now.ca === null ? before.ca !== null : addsAuthority(before, now)

function tlsIssues({ file: former, certificates: before }: Read, { file: next, certificates: now }: Read): string[] {
  if (former.tls === null) return []
  if (next.tls === null) return ['tls: the data port takes plain text now']
  if (former.tls.clientCaFile === null) return []
  if (next.tls.clientCaFile === null) return ['tls: clients need no certificate any more']
  if (before.tls === null || now.tls === null || !trustsMore(before.tls, now.tls)) return []
  return [`tls: ${next.tls.clientCaFile} makes client certificates valid that were refused before`]
}

/** Sentences about the PDP and the services. A service that only routes name is compared with the one at the same position before. */
function peerIssues(before: Read, now: Read): string[] {
  const { file: former, certificates } = before
  const samePdp = isDeepStrictEqual(former.pdp, now.file.pdp) && !trustsMore(certificates.pdp, now.certificates.pdp)
  const known = [serviceOfFile(before), ...namedServices(before)]
  return [
    ...(samePdp ? [] : ['pdp: another PDP decides, or the sidecar reaches it in another way']),
    ...upstreamIssues(serviceOfFile(before), serviceOfFile(now)),
    ...namedServices(now).flatMap((one) =>
      upstreamIssues(
        known.find(({ entry }) => isDeepStrictEqual(entry, one.entry)) ??
          known.find(({ entry }) => placeOf(entry) === placeOf(one.entry)),
        one,
      ),
    ),
  ]
}

type Service = { readonly entry: UpstreamEntry; readonly pem: Pem }

const serviceOfFile = ({ file, certificates }: Read): Service => ({ entry: file.upstream, pem: certificates.upstream })

const namedServices = ({ file, certificates }: Read): readonly Service[] =>
  [...upstreamsOf(file.routes)].map((entry) => ({ entry, pem: certificates.upstreams.get(entry) ?? NO_PEM }))

const placeOf = ({ socketPath, origin }: UpstreamEntry): string => socketPath ?? origin

function upstreamIssues(before: Service | undefined, { entry, pem }: Service): string[] {
  const gets = `upstream: ${placeOf(entry)} gets the requests now`
  if (before === undefined) return [gets]
  const { entry: former } = before
  return [
    ...(placeOf(former) === placeOf(entry) ? [] : [gets]),
    ...(former.serverName === entry.serverName && former.host === entry.host
      ? []
      : ['upstream: the service is reached by another name now']),
    ...(trustsMore(before.pem, pem)
      ? ['upstream: certificates of the service are valid that were refused before']
      : []),
    ...(entry.reuseAfterBody && !former.reuseAfterBody
      ? ['upstream: a connection is used again although the service may have left a body unread']
      : []),
    ...(entry.perClient || !former.perClient ? [] : ['upstream: clients share connections to the service now']),
  ]
}

function signInIssues({ signIn: former }: RouteFile, { signIn: next }: RouteFile): readonly string[] {
  if (next === null || isDeepStrictEqual(former, next)) return []
  return [
    former === null ? 'sign_in: browsers may sign in now' : 'sign_in: browsers sign in in another way than before',
  ]
}

/** The origins whose pages may read answers by `cors`, as texts to compare. */
const pagesOf = (cors: Cors | null): readonly string[] => {
  if (cors === null) return []
  const pages = cors.origins === null ? ['every origin'] : [...cors.origins]
  return cors.credentials ? pages.flatMap((page) => [page, `${page} with cookies`]) : pages
}

/** True when pages of some origin may do something that they could not do before. */
export const sharesMore = (before: Cors | null, now: Cors | null): boolean =>
  pagesOf(now).some((page) => !pagesOf(before).includes(page)) ||
  (now?.passesPreflights === true && before?.passesPreflights !== true)
