/** The part of the route file's format about the programs around the sidecar: the service, the PDP, clients and gateways. */
import { DOOR_PROFILES } from '../../http/door-fields.ts'
import { FLAG, listOf, type Members, mapOf, oneOf, optional, required, TEXT, textLike } from './schema.ts'

export const CONNECTIONS = ['shared', 'per_client'] as const
export const HOST_AND_PORT = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$/
export const SOCKET_PATH = /^\/[^\0]{1,100}$/
export const SERVER_NAME = /^(?=.{1,253}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
export const HOST_FIELD = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$/
export const STRIP_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/
export const HTTP_URL = /^https?:\/\//

export const PEER_FILES = {
  ca_file: optional(TEXT, 'PEM file of certificate authorities. Default: those of the system.'),
  cert_file: optional(TEXT, 'PEM file of the certificate. Needs key_file.'),
  key_file: optional(TEXT, 'PEM file of the key. Needs cert_file.'),
} as const satisfies Members

export const UPSTREAM = {
  url: required(textLike(HTTP_URL), 'Origin of the service.'),
  http2: optional(
    FLAG,
    'HTTP/2, which gRPC services need: with prior knowledge over http, with ALPN over https. It excludes WebSocket routes.',
  ),
  connections: optional(
    oneOf(CONNECTIONS),
    'per_client: no connection to the service carries requests of two client connections, addresses or subjects. Default: shared. Not with http2.',
  ),
  reuse_after_body: optional(
    FLAG,
    'The service reads every request body to its end or closes the connection (RFC 9112 section 9.3), on every path. Default: false: a connection that carried a body is not used again, because a service that leaves a body unread would run it as the next request. Requests with trailers never share a connection. Not with http2.',
  ),
  socket: optional(
    textLike(SOCKET_PATH),
    'Path of a unix socket where the service listens, in place of the host and port of url.',
  ),
  server_name: optional(
    textLike(SERVER_NAME),
    'The name that the certificate of the service must be for, and that is asked for (SNI). Default: the host of url.',
  ),
  host: optional(
    textLike(HOST_FIELD),
    'The Host field that the service gets: a host name, with a port if it needs one. X-Forwarded-Host has the one of the client. Default: that of the client.',
  ),
  strip_path: optional(
    textLike(STRIP_PATH),
    'The beginning of paths that the service does not get: with /auth it gets /login for /auth/login, and / for /auth and /auth/. Every route to the service begins with it; checks and the log see the path of the client. Not with doors.',
  ),
  add_path: optional(
    textLike(STRIP_PATH),
    'The path below which the service gets what is left: with strip_path /ws and add_path /graphql it gets /graphql for /ws, and /graphql/x for /ws/x. A path that a service could read as one outside of it is 400. Not with doors.',
  ),
  assertion_audience: optional(
    TEXT,
    'The aud claim of assertions for this service. Default: the audience of assertion, which is for the service of the file. At routes only.',
  ),
  ...PEER_FILES,
} as const satisfies Members

export const PDP = {
  address: optional(textLike(HOST_AND_PORT), 'host:port of the PDP. Exactly one of address and addresses is needed.'),
  addresses: optional(listOf(textLike(HOST_AND_PORT)), 'host:port of each PDP.'),
  insecure: optional(FLAG, 'Plain text. Allowed only when every address is loopback.'),
  token_file: optional(TEXT, 'File with the token that authenticates the sidecar to the PDP.'),
  ...PEER_FILES,
} as const satisfies Members

export const TLS = {
  cert_file: required(TEXT, 'PEM file of the certificate.'),
  key_file: required(TEXT, 'PEM file of the key.'),
  client_ca_file: optional(
    TEXT,
    'Clients must present a certificate of these authorities. When one is removed, all open connections end.',
  ),
} as const satisfies Members

export const DOOR = {
  profile: required(
    oneOf(DOOR_PROFILES),
    'The gateway that asks here: envoy, istio and gateway-api over gRPC (ext_authz v3), nginx (auth_request), traefik (ForwardAuth) and caddy (forward_auth) over HTTP.',
  ),
  listen: required(
    textLike(/^(unix:\/.+|.*:[0-9]{1,5})$/),
    'host:port, or unix:/path of a socket, which only its owner and group may open.',
  ),
  secret_file: optional(
    TEXT,
    'File with a secret of at least 32 characters, which the gateway sends in X-Portcullis-Caller (over gRPC: as initial metadata). Without tls on loopback only.',
  ),
  tls: optional(
    mapOf(TLS),
    'TLS of the door. With client_ca_file only gateways with a certificate of these authorities are answered.',
  ),
  body: optional(
    FLAG,
    'The gateway sends request bodies (with_request_body of Envoy), which checks may then read. Default: false.',
  ),
} as const satisfies Members
