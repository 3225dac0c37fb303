/** Prints for Istio the provider, a policy that asks about every request, and filters for what the mesh configuration lacks. */
import type { ConfigFile, GatewayPlan } from '../plan.ts'
import { DOOR_TIMEOUT_SECONDS } from '../plan.ts'
import { AUTHORIZER, authorizerHost, manifests } from './kubernetes.ts'

const TYPE = 'type.googleapis.com/envoy.extensions.filters'
const PROVIDER = 'portcullis'
const GATEWAYS = { namespace: 'istio-system', labels: { istio: 'ingressgateway' } } as const
const inGateways = (name: string): object => ({ name, namespace: GATEWAYS.namespace })

export function istioConfig({ bodyBytesMax }: GatewayPlan): readonly ConfigFile[] {
  const body = { maxRequestBytes: bodyBytesMax, allowPartialMessage: false, packAsBytes: true }
  const provider = {
    service: authorizerHost,
    port: AUTHORIZER.port,
    timeout: `${DOOR_TIMEOUT_SECONDS}s`,
    failOpen: false,
    statusOnError: '503',
    clearRouteCache: false,
    ...(bodyBytesMax !== null && { includeRequestBodyInCheck: body }),
  }
  return manifests('istio.yaml', [
    {
      apiVersion: 'install.istio.io/v1alpha1',
      kind: 'IstioOperator',
      metadata: inGateways('portcullis'),
      spec: {
        meshConfig: {
          extensionProviders: [{ name: PROVIDER, envoyExtAuthzGrpc: provider }],
          pathNormalization: { normalization: 'NONE' },
        },
      },
    },
    {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: inGateways('portcullis'),
      // An empty rule matches every request: the route file decides what is public.
      spec: {
        selector: { matchLabels: GATEWAYS.labels },
        action: 'CUSTOM',
        provider: { name: PROVIDER },
        rules: [{}],
      },
    },
    {
      apiVersion: 'networking.istio.io/v1alpha3',
      kind: 'EnvoyFilter',
      metadata: inGateways('portcullis'),
      spec: { workloadSelector: { labels: GATEWAYS.labels }, configPatches: [rawHeaders, underscores] },
    },
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'DestinationRule',
      metadata: inGateways('portcullis-authorizer'),
      spec: {
        host: authorizerHost,
        // The Secret has tls.crt, tls.key and ca.crt. It must be in the namespace of the gateway.
        trafficPolicy: {
          tls: {
            mode: 'MUTUAL',
            credentialName: 'portcullis-gateway-tls',
            sni: authorizerHost,
            subjectAltNames: [authorizerHost],
          },
        },
      },
    },
  ])
}

const MANAGER = { name: 'envoy.filters.network.http_connection_manager' }

/** Raw headers keep repeated fields apart, which a joined value would hide. */
const rawHeaders = {
  applyTo: 'HTTP_FILTER',
  match: {
    context: 'GATEWAY',
    listener: { filterChain: { filter: { ...MANAGER, subFilter: { name: 'envoy.filters.http.ext_authz' } } } },
  },
  patch: {
    operation: 'MERGE',
    value: {
      name: 'envoy.filters.http.ext_authz',
      typed_config: { '@type': `${TYPE}.http.ext_authz.v3.ExtAuthz`, encode_raw_headers: true },
    },
  },
}

const underscores = {
  applyTo: 'NETWORK_FILTER',
  match: { context: 'GATEWAY', listener: { filterChain: { filter: MANAGER } } },
  patch: {
    operation: 'MERGE',
    value: {
      typed_config: {
        '@type': `${TYPE}.network.http_connection_manager.v3.HttpConnectionManager`,
        merge_slashes: false,
        common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
      },
    },
  },
}
