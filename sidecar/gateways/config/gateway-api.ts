/** Gateway API: an HTTPRoute with the ExternalAuth filter, or for Envoy Gateway a policy on the route. */
import { isIP } from 'node:net'
import { isLoopback } from '../../../pdp/shared/process/listen.ts'
import type { ConfigFile, GatewayPlan } from '../plan.ts'
import { DOOR_TIMEOUT_SECONDS } from '../plan.ts'
import { AUTHORIZER, authorizerHost, GATEWAY, manifests } from './kubernetes.ts'

const ROUTE = 'service'
const BACKEND = { name: AUTHORIZER.service, namespace: AUTHORIZER.namespace, port: AUTHORIZER.port } as const

/** Uses the standard filter of the Gateway API, which is experimental (GEP-1494). Without allowedHeaders the door gets all fields. */
export function gatewayApiConfig(plan: GatewayPlan): readonly ConfigFile[] {
  const filter = {
    type: 'ExternalAuth',
    externalAuth: {
      protocol: 'GRPC',
      backendRef: BACKEND,
      grpc: {},
      ...(plan.bodyBytesMax !== null && { forwardBody: { maxSize: plan.bodyBytesMax } }),
    },
  }
  return manifests('gateway-api.yaml', [
    route(plan, [filter]),
    referenceGrant('HTTPRoute', 'gateway.networking.k8s.io'),
    doorTls,
    ...serviceTls(plan),
  ])
}

export function envoyGatewayConfig(plan: GatewayPlan): readonly ConfigFile[] {
  return manifests('envoy-gateway.yaml', [
    route(plan, []),
    {
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'SecurityPolicy',
      metadata: { name: 'portcullis', namespace: GATEWAY.namespace },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: GATEWAY.name }],
        extAuth: {
          grpc: { backendRefs: [BACKEND] },
          failOpen: false,
          recomputeRoute: false,
          timeout: `${DOOR_TIMEOUT_SECONDS}s`,
          ...(plan.bodyBytesMax !== null && { bodyToExtAuth: { maxRequestBytes: plan.bodyBytesMax } }),
        },
      },
    },
    {
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'ClientTrafficPolicy',
      metadata: { name: 'portcullis', namespace: GATEWAY.namespace },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: GATEWAY.name }],
        // Envoy Gateway's default would merge slashes and unescape them before the door sees the path.
        path: {
          disableMergeSlashes: true,
          escapedSlashesAction: plan.encodedSlash ? 'KeepUnchanged' : 'RejectRequest',
        },
        headers: { withUnderscoresAction: 'RejectRequest' },
      },
    },
    referenceGrant('SecurityPolicy', 'gateway.envoyproxy.io'),
    doorTls,
    ...serviceTls(plan),
  ])
}

const route = ({ hosts, service }: GatewayPlan, filters: readonly object[]): object => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: ROUTE, namespace: GATEWAY.namespace },
  spec: {
    parentRefs: [{ name: GATEWAY.name }],
    hostnames: hosts.filter((host) => host !== 'localhost' && !isIP(host.replaceAll(/[[\]]/g, ''))),
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: '/' } }],
        ...(filters.length > 0 && { filters }),
        backendRefs: [{ name: nameOf(service), port: service.port }],
      },
    ],
  },
})

const nameOf = ({ host }: GatewayPlan['service']): string => (isLoopback(host) ? ROUTE : (host.split('.')[0] ?? ROUTE))

/** Permits routes of another namespace to name the authorizer's Service. */
const referenceGrant = (kind: string, group: string): object => ({
  apiVersion: 'gateway.networking.k8s.io/v1beta1',
  kind: 'ReferenceGrant',
  metadata: { name: 'portcullis-authorizer', namespace: AUTHORIZER.namespace },
  spec: {
    from: [{ group, kind, namespace: GATEWAY.namespace }],
    to: [{ group: '', kind: 'Service', name: AUTHORIZER.service }],
  },
})

type Verified = {
  readonly name: string
  readonly namespace: string
  readonly hostname: string
  readonly authority: object
}

const backendTls = ({ name, namespace, hostname, authority }: Verified): object => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'BackendTLSPolicy',
  metadata: { name, namespace },
  spec: { targetRefs: [{ group: '', kind: 'Service', name }], validation: { ...authority, hostname } },
})

const doorTls = backendTls({
  name: AUTHORIZER.service,
  namespace: AUTHORIZER.namespace,
  hostname: authorizerHost,
  authority: { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'portcullis-authorizer-ca' }] },
})

/** A policy for TLS to the service. Without it the gateway would connect in plain text. */
function serviceTls({ service }: GatewayPlan): readonly object[] {
  if (!service.tls) return []
  const [name, { namespace }] = [nameOf(service), GATEWAY]
  return [backendTls({ name, namespace, hostname: service.host, authority: { wellKnownCACertificates: 'System' } })]
}
