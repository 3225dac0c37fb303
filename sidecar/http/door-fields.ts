/** The header fields in which the gateways of each profile describe a request. */
import { OWN_FIELDS } from './stripped-fields.ts'

/** Profiles that ask over gRPC, by Envoy's ext_authz. */
export const GRPC_PROFILES = ['envoy', 'istio', 'gateway-api'] as const
/** Profiles that ask over HTTP: by auth_request of nginx, ForwardAuth of Traefik, forward_auth of Caddy. */
export const HTTP_PROFILES = ['nginx', 'traefik', 'caddy'] as const
export const DOOR_PROFILES = [...GRPC_PROFILES, ...HTTP_PROFILES] as const
export type GrpcProfile = (typeof GRPC_PROFILES)[number]
export type HttpProfile = (typeof HTTP_PROFILES)[number]
export type DoorProfile = (typeof DOOR_PROFILES)[number]

export const isHttpProfile = (profile: DoorProfile): profile is HttpProfile =>
  HTTP_PROFILES.some((name) => name === profile)

/** The names of these fields, in lower case. */
export type DoorFields = {
  readonly method: string
  readonly target: string
  readonly host: string
  readonly scheme: string
  /** The client's address. In a list it is the last one, which the gateway has added. */
  readonly client: string
  /** Fields that the gateway adds to its question. Its configuration must set or remove each of them towards the service. */
  readonly ofGateway: readonly string[]
}

const ORIGINAL = ['x-original-method', 'x-original-uri', 'x-original-host', 'x-original-scheme', 'x-original-for']
const FORWARDED = ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-for']

/** The fields that each profile reads. No other field is ever read as method, target, host or address. */
export const DOOR_FIELDS: { readonly [name in HttpProfile]: DoorFields } = {
  nginx: {
    method: 'x-original-method',
    target: 'x-original-uri',
    host: 'x-original-host',
    scheme: 'x-original-scheme',
    client: 'x-original-for',
    ofGateway: [...ORIGINAL, 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'],
  },
  traefik: {
    method: 'x-forwarded-method',
    target: 'x-forwarded-uri',
    host: 'x-forwarded-host',
    scheme: 'x-forwarded-proto',
    client: 'x-forwarded-for',
    ofGateway: [...FORWARDED, 'x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-server', 'x-real-ip'],
  },
  caddy: {
    method: 'x-forwarded-method',
    target: 'x-forwarded-uri',
    host: 'x-forwarded-host',
    scheme: 'x-forwarded-proto',
    client: 'x-forwarded-for',
    ofGateway: FORWARDED,
  },
}

/** The field, or the metadata over gRPC, with the secret of a gateway. */
export const CALLER_FIELD = 'x-portcullis-caller'
/** The path at which gateways ask over HTTP. */
export const AUTHORIZE_PATH = '/authorize'
/** The path at which nginx gets the answer for the client, since it forwards neither body nor fields of a refusal. */
export const REFUSED_PATH = '/refused'
/** The field in which nginx sends that answer back to `REFUSED_PATH`. */
export const REFUSAL_FIELD = 'x-portcullis-refusal'

/** The fields that tell the service who the sender is. Each allowing answer of a door sets all of them and so replaces the client's. */
export const IDENTITY_FIELDS = OWN_FIELDS.filter((name) => name.startsWith('x-auth-'))

/** Fields in each allowing answer of an HTTP door: with them the gateway overwrites fields of the client. */
export const answerFields = (identity: readonly { readonly name: string }[] = []): readonly string[] => [
  ...IDENTITY_FIELDS,
  ...identity.map(({ name }) => name),
  'x-request-id',
]
