/** Prints static and dynamic configuration of Traefik that asks the door about each request. */
import { stringify } from 'yaml'
import { exactNames, OF_TRAEFIK, prefixes } from '../../http/cleared.ts'
import { AUTHORIZE_PATH, answerFields } from '../../http/door-fields.ts'
import { type ConfigFile, CREDENTIALS, type GatewayPlan, type HostAndPort, written } from '../plan.ts'
import { PlanError } from '../plan-error.ts'

const ENTRY_POINT = 'web'
const MIDDLEWARE = 'portcullis'

export function traefikConfig(plan: GatewayPlan): readonly ConfigFile[] {
  return [
    { name: 'traefik.yaml', text: stringify(staticConfig(plan), { lineWidth: 0 }) },
    { name: 'dynamic.yaml', text: stringify(dynamicConfig(plan), { lineWidth: 0 }) },
  ]
}

function staticConfig({ listen }: GatewayPlan): object {
  return {
    entryPoints: {
      [ENTRY_POINT]: {
        address: `${listen.host === '0.0.0.0' ? '' : bracketed(listen.host)}:${listen.port}`,
        forwardedHeaders: { insecure: false },
      },
    },
    providers: { file: { filename: 'dynamic.yaml' } },
  }
}

function dynamicConfig(plan: GatewayPlan): object {
  const { service } = plan
  return {
    http: {
      routers: {
        // Matches every host and path: the door itself refuses those that it does not serve.
        service: {
          entryPoints: [ENTRY_POINT],
          rule: 'PathPrefix(`/`)',
          middlewares: [MIDDLEWARE],
          service: 'service',
        },
      },
      middlewares: {
        [MIDDLEWARE]: {
          forwardAuth: {
            ...doorOf(plan),
            // Traefik removes the client's own X-Forwarded-* first.
            trustForwardHeader: false,
            // Traefik removes these fields from each request, and then sets those that the door's answer has.
            authResponseHeaders: [...answerFields(plan.headers.identity), ...CREDENTIALS].map(written),
            authResponseHeadersRegex: clearedPattern(plan),
          },
        },
      },
      services: {
        service: {
          loadBalancer: {
            passHostHeader: true,
            servers: [{ url: `${service.tls ? 'https' : service.http2 ? 'h2c' : 'http'}://${authority(service)}` }],
          },
        },
      },
    },
  }
}

/** The door's address and TLS. Traefik cannot send a secret or use a unix socket, so a client certificate must authenticate it. */
function doorOf({ door }: GatewayPlan): object {
  if (door.kind !== 'tls' || door.client === null)
    throw new PlanError(
      'Traefik proves itself to a door by its certificate only: give the door tls with client_ca_file',
    )
  const { ca, client, at } = door
  return { address: `https://${authority(at)}${AUTHORIZE_PATH}`, tls: { ca, cert: client.cert, key: client.key } }
}

/** A regular expression of Go for fields that services believe, and for names with characters other than letters, digits and `-`. */
function clearedPattern({ headers }: GatewayPlan): string {
  const tokens: readonly string[] = CREDENTIALS
  const exact = exactNames(headers).filter((name) => !tokens.includes(name) && name !== 'x-real-ip')
  const starts = prefixes(headers)
    .filter((prefix) => !OF_TRAEFIK.includes(prefix))
    .map((prefix) => `${prefix}.*`)
  const uncovered = exact.filter((name) => !starts.some((start) => name.startsWith(start.slice(0, -2))))
  return `(?i)^(${[...starts, ...uncovered].join('|')})$|[^A-Za-z0-9-]`
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
const authority = ({ host, port }: HostAndPort): string => `${bracketed(host)}:${port}`
