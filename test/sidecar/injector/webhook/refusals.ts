/** Pods that the injector refuses, each laid over the one that works, with the reason. */
import type { DenialCode, Mode } from '../../../../sidecar/injector/pod/injection.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'
import { ASKING } from '../pod/pods.ts'

const port = (over: JsonObject): JsonObject => ({
  container: { ports: [{ name: 'http', containerPort: 8080, ...over }] },
})
export const says = (over: JsonObject): JsonObject => ({ annotations: { ...ASKING, ...over } })
/** What is wrong, the reason, what is laid over, and the mode (enabled unless said). */
export const REFUSED: readonly (readonly [string, DenialCode, JsonObject, Mode?])[] = [
  ['a Pod without containers', 'pod_invalid', { spec: { containers: [] } }],
  ['a port that is text', 'pod_invalid', port({ containerPort: '8080' })],
  ['a container without a name', 'pod_invalid', { spec: { containers: [{ image: 'app' }] } }],
  ['an annotation that would choose the image', 'wish_invalid', says({ 'portcullis.dev/image': 'evil/sidecar' })],
  ['a routes annotation that leaves the namespace', 'wish_invalid', says({ 'portcullis.dev/routes': '../other/cm' })],
  ['a secrets annotation that leaves the namespace', 'wish_invalid', says({ 'portcullis.dev/secrets': '../other/s' })],
  ['a secrets annotation that names nothing', 'wish_invalid', says({ 'portcullis.dev/secrets': '' })],
  ['a port number for a name', 'wish_invalid', says({ 'portcullis.dev/ports': '8080' })],
  ['a port listed twice', 'wish_invalid', says({ 'portcullis.dev/ports': 'http,http' })],
  ['no port at all', 'wish_invalid', says({ 'portcullis.dev/ports': ' , ' })],
  ['more ports than there are sidecars', 'wish_invalid', says({ 'portcullis.dev/ports': 'a,b,c,d,e' })],
  ['an unprotected port that is none', 'wish_invalid', says({ 'portcullis.dev/unprotected-ports': '0' })],
  ['a path to scrape that is a pattern', 'wish_invalid', says({ 'portcullis.dev/scrape': '/**' })],
  ['a path to scrape with dots', 'wish_invalid', says({ 'portcullis.dev/scrape': '/a/../metrics' })],
  ['a path to scrape that brings its peers', 'wish_invalid', says({ 'portcullis.dev/scrape': '/metrics=0.0.0.0/0' })],
  ['five paths to scrape', 'wish_invalid', says({ 'portcullis.dev/scrape': '/a,/b,/c,/d,/e' })],
  ['a path to scrape where nobody may', 'wish_refused', says({ 'portcullis.dev/scrape': '/metrics' })],
  ['a CPU request that is no quantity', 'wish_invalid', says({ 'portcullis.dev/cpu': 'much' })],
  ['a limit below its request', 'wish_invalid', says({ 'portcullis.dev/memory': '128Mi,64Mi' })],
  ['three amounts', 'wish_invalid', says({ 'portcullis.dev/cpu': '1,2,3' })],
  ['more CPU than the operator allows', 'wish_refused', says({ 'portcullis.dev/cpu': '100m,4' })],
  ['less memory than the operator allows', 'wish_refused', says({ 'portcullis.dev/memory': '8Mi' })],
  ['a Pod for Windows', 'windows_unsupported', { spec: { os: { name: 'windows' } } }],
  ['nodes with Windows', 'windows_unsupported', { spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } }],
  ['an unknown label of ours', 'wish_invalid', { labels: { 'portcullis.dev/injekt': 'disabled' } }],
  ['an inject label that is neither', 'wish_invalid', { labels: { 'portcullis.dev/inject': 'off' } }],
  [
    'the way out where a sidecar is required',
    'opted_out',
    { labels: { 'portcullis.dev/inject': 'disabled' } },
    'required',
  ],
  ['the network of the node', 'host_network', { spec: { hostNetwork: true } }],
  [
    'the network of the node, asking for nothing',
    'host_network',
    { annotations: {}, spec: { hostNetwork: true } },
    'required',
  ],
  [
    'shared processes where a sidecar is required',
    'processes_shared',
    { spec: { shareProcessNamespace: true } },
    'required',
  ],
  [
    'the processes of the node where a sidecar is required',
    'processes_shared',
    { spec: { hostPID: true } },
    'required',
  ],
  [
    'an unprotected port instead of a sidecar where one is required',
    'port_unprotected',
    { annotations: { 'portcullis.dev/ports': 'none', 'portcullis.dev/unprotected-ports': 'http' } },
    'required',
  ],
  [
    'a container of the app that mounts what is the sidecar’s',
    'name_taken',
    { container: { volumeMounts: [{ name: 'portcullis-control', mountPath: '/x' }] } },
  ],
  [
    'a container of the app that mounts the secrets of the sidecar',
    'name_taken',
    {
      annotations: { ...ASKING, 'portcullis.dev/secrets': 'invoices-sign-in' },
      container: { volumeMounts: [{ name: 'portcullis-secrets', mountPath: '/x' }] },
    },
  ],
  [
    'a token of the app’s own that asks the PDP',
    'token_taken',
    {
      spec: {
        volumes: [
          {
            name: 'mine',
            projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'portcullis-pdp' } }] },
          },
        ],
      },
    },
  ],
  ['no word about ports where a sidecar is required', 'ports_missing', { annotations: {} }, 'required'],
  [
    'ports that are said not to exist',
    'port_unprotected',
    { annotations: { 'portcullis.dev/ports': 'none' } },
    'required',
  ],
  ['no route files', 'routes_missing', { annotations: { 'portcullis.dev/ports': 'http' } }],
  ['the mark of an injected Pod', 'label_forged', { annotations: {}, labels: { 'portcullis.dev/injected': 'true' } }],
  [
    'a foreign container with the name of the sidecar',
    'name_taken',
    {
      spec: {
        containers: [
          { name: 'app', ports: [{ name: 'http', containerPort: 8080 }] },
          { name: 'portcullis-sidecar', image: 'evil' },
        ],
      },
    },
  ],
  [
    'a foreign container with a name like ours',
    'name_taken',
    { annotations: {}, spec: { containers: [{ name: 'portcullis-x' }] } },
  ],
  [
    'a foreign volume with the name of ours',
    'name_taken',
    { spec: { volumes: [{ name: 'portcullis-routes', emptyDir: {} }] } },
  ],
  ['a port in the range of the sidecars', 'port_taken', port({ containerPort: 15_083 })],
  ['a port that no container has', 'port_missing', port({ name: 'web' })],
  [
    'a name that two containers have',
    'port_repeated',
    { spec: { initContainers: [{ name: 'mesh', ports: [{ name: 'http', containerPort: 1 }] }] } },
  ],
  [
    'a name that the app needs behind the sidecar',
    'port_repeated',
    {
      container: {
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'app-http', containerPort: 8081 },
        ],
      },
    },
  ],
  ['a port on the node', 'port_unfit', port({ hostPort: 8080 })],
  [
    'another port on the node',
    'port_unfit',
    {
      container: {
        ports: [
          { name: 'http', containerPort: 8080 },
          { containerPort: 9100, hostPort: 9100 },
        ],
      },
    },
  ],
  [
    'the number of a protected port under another name',
    'port_repeated',
    {
      container: {
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'metrics', containerPort: 8080 },
        ],
      },
    },
  ],
  [
    'the protected port called unprotected by its number',
    'port_covered',
    says({ 'portcullis.dev/unprotected-ports': '8080' }),
  ],
  [
    'the protected port called unprotected by its name',
    'port_covered',
    says({ 'portcullis.dev/unprotected-ports': 'http' }),
  ],
  [
    'the name behind the sidecar called unprotected',
    'port_covered',
    says({ 'portcullis.dev/unprotected-ports': 'app-http' }),
  ],
  ['the port of a sidecar called unprotected', 'port_covered', says({ 'portcullis.dev/unprotected-ports': '15081' })],
  [
    'more unprotected ports than anybody has',
    'wish_invalid',
    says({ 'portcullis.dev/unprotected-ports': Array.from({ length: 17 }, (_, at) => 9000 + at).join() }),
  ],
  [
    'the mark of an open port that it does not ask for',
    'label_forged',
    { labels: { 'portcullis.dev/open-8080': 'true' } },
  ],
  [
    'the mark of an open port without a sidecar',
    'label_forged',
    { annotations: {}, labels: { 'portcullis.dev/open-8080': 'true' } },
  ],
  [
    'a foreign volume with a name like ours',
    'name_taken',
    { spec: { volumes: [{ name: 'portcullis-x', emptyDir: {} }] } },
  ],
  ['a port that is not TCP', 'port_unfit', port({ protocol: 'UDP' })],
  [
    'a port beside the sidecar where one is required',
    'port_unprotected',
    { container: { ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 9100 }] } },
    'required',
  ],
]
