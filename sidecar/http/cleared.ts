/**
 * The fields of a client that each gateway removes before it forwards. Most gateways cannot remove by prefix, so a door refuses a request
 * with a trusted field that its gateway would forward.
 */
import { createHeaderRules, type HeaderNames } from './fields.ts'
import { COMMONLY_TRUSTED_FIELDS, CREDENTIAL_FIELDS, OWN_FIELDS } from './stripped-fields.ts'

/** Names covered by prefixes of the list that browsers, proxies and content networks usually send, and fields of one connection. */
const USUAL_MEMBERS = [
  // Traefik would forward an upgrade, and the bytes that follow it are not checked.
  'upgrade',
  'http2-settings',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'forwarded',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-forwarded-scheme',
  'x-forwarded-ssl',
  'x-forwarded-prefix',
  'x-forwarded-path',
  'x-forwarded-uri',
  'x-forwarded-method',
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-groups',
  'x-forwarded-preferred-username',
  'x-forwarded-access-token',
  'x-forwarded-client-cert',
  'x-forwarded-tls-client-cert',
  'x-forward-for',
  'x-original-uri',
  'x-original-url',
  'x-original-method',
  'x-original-host',
  'x-original-for',
  'x-original-scheme',
  'x-original-forwarded-for',
  'x-originating-ip',
  'x-rewrite-url',
  'x-real-ip',
  'x-host',
  'x-http-method',
  'x-http-method-override',
  'x-auth-user',
  'x-auth-email',
  'x-auth-groups',
  'x-auth-token',
  'x-auth-request-user',
  'x-auth-request-email',
  'x-auth-request-groups',
  'x-auth-request-preferred-username',
  'x-auth-request-access-token',
  'x-authenticated-user',
  'x-authenticated-userid',
  'x-remote-user',
  'x-remote-group',
  'remote-user',
  'remote-name',
  'remote-email',
  'remote-groups',
  'remote-addr',
  'x-webauth-user',
  'ssl-client-cert',
  'ssl-client-verify',
  'x-ssl-client-cert',
  'x-client-cert',
  'client-cert',
  'x-envoy-external-address',
  'x-envoy-original-path',
  'x-portcullis-caller',
  'x-portcullis-refusal',
  'x-accel-mapping',
  'x-sendfile-type',
  'surrogate-capability',
  'cf-connecting-ip',
  'cf-ipcountry',
  'cf-ray',
  'cf-visitor',
  'cf-ew-via',
  'cf-worker',
  'cdn-loop',
  'fastly-client-ip',
  'cloudfront-viewer-country',
  'x-azure-ref',
  'x-azure-clientip',
  'x-appengine-country',
]
/** Fields that the gateway sets after the decision, or that belong to the connection. Forwarded is not among them: no gateway sets it. */
const SET: ReadonlySet<string> = new Set(OWN_FIELDS.filter((name) => name !== 'forwarded'))

/** Names to remove in a gateway without patterns: the exact names of the list, and common names that its prefixes cover. */
export function exactNames({ strip, pass, identity = [] }: HeaderNames): readonly string[] {
  // The gateway overwrites identity fields with those of the door's answer, so they need no removal.
  const kept = new Set([...pass.map((name) => name.toLowerCase()), ...identity.map(({ name }) => name)])
  const { passes } = createHeaderRules({ strip, pass })
  const listed = [
    ...CREDENTIAL_FIELDS,
    ...COMMONLY_TRUSTED_FIELDS,
    ...USUAL_MEMBERS,
    ...strip.map((name) => name.toLowerCase()),
  ]
  return [...new Set(listed.filter((name) => !name.endsWith('*') && !SET.has(name) && !kept.has(name)))].filter(
    (name) => !passes(name),
  )
}

/** Prefixes, without `*`, to remove in a gateway with patterns. Prefixes that would also remove a name of `pass_headers` are left out. */
export function prefixes({ strip, pass }: HeaderNames): readonly string[] {
  const passing = pass.map((name) => name.toLowerCase())
  return [...COMMONLY_TRUSTED_FIELDS, ...strip.map((name) => name.toLowerCase())]
    .filter((name) => name.endsWith('*'))
    .map((name) => name.slice(0, -1))
    .filter((prefix) => !passing.some((name) => name.startsWith(prefix)))
}

/** Traefik sets fields with these prefixes before its middlewares run, so its middlewares cannot remove the client's. */
export const OF_TRAEFIK = ['x-forward', 'x-real-']
