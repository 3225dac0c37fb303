/** The request as the gateways of each profile describe it, and the header fields that hold it. */
import { OWN_FIELDS } from './stripped-fields.ts'

/** Ask over gRPC: Envoy's ext_authz. */
export const GRPC_PROFILES = ['envoy', 'istio', 'gateway-api'] as const
/** Ask over HTTP: auth_request of nginx, ForwardAuth of Traefik, forward_auth of Caddy. */
export const HTTP_PROFILES = ['nginx', 'traefik', 'caddy'] as const
export const DOOR_PROFILES = [...GRPC_PROFILES, ...HTTP_PROFILES] as const
export type GrpcProfile = (typeof GRPC_PROFILES)[number]
export type HttpProfile = (typeof HTTP_PROFILES)[number]
export type DoorProfile = (typeof DOOR_PROFILES)[number]

export const isHttpProfile = (profile: DoorProfile): profile is HttpProfile =>
  HTTP_PROFILES.some((name) => name === profile)

/** Names in lower case. */
export type DoorFields = {
  readonly method: string
  readonly target: string
  readonly host: string
  readonly scheme: string
  /** The client's address; of a list the last one, which the gateway has added. */
  readonly client: string
  /** Fields that the gateway adds to the question. Towards the service its configuration must set or remove each of them. */
  readonly ofGateway: readonly string[]
}

const ORIGINAL = ['x-original-method', 'x-original-uri', 'x-original-host', 'x-original-scheme', 'x-original-for']
const FORWARDED = ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-for']

/** A field that is not one of the profile's own is never read as method, target, host or address. */
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

/** Holds the secret of a gateway: a field over HTTP, metadata over gRPC. */
export const CALLER_FIELD = 'x-portcullis-caller'
/** Where forward auth asks. */
export const AUTHORIZE_PATH = '/authorize'
/** Where nginx, which passes on neither body nor fields of a refusal, gets the answer for the client. */
export const REFUSED_PATH = '/refused'
/** Holds that answer on the way. */
export const REFUSAL_FIELD = 'x-portcullis-refusal'

/** The fields that name the bearer to the service. A door names each of them in every answer that allows. */
export const IDENTITY_FIELDS = OWN_FIELDS.filter((name) => name.startsWith('x-auth-'))

/** Fields that a door which is asked over HTTP sends in every permit, and a gateway writes over the client's own. */
export const answerFields = (identity: readonly { readonly name: string }[] = []): readonly string[] => [
  ...IDENTITY_FIELDS,
  ...identity.map(({ name }) => name),
  'x-request-id',
]
