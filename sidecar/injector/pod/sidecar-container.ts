/** Builds the sidecar's containers and volumes for a Pod, with every default written out so that they can be compared. */
import { NODE_FLAGS } from '../../../pdp/shared/process/command/node-flags.ts'
import { PREFIX } from './annotations.ts'
import type { InjectorConfig, SecretKey } from './config.ts'
import type { JsonObject } from './json.ts'
import { portsAt } from './ports.ts'

/** Container and volume names with this prefix are reserved for the injector. */
export const RESERVED = 'portcullis-'
/**
 * The program, as in the Dockerfile; the image's entry point is not used. Long-lived objects may take half of the container's memory limit,
 * buffers and code need the rest: without this flag, Node would exceed a limit below 512 MB. `pdp/shared/process/command/node-flags.ts`
 * explains the other flag.
 */
const PROGRAM = '/app/sidecar/bin.js'
export const COMMAND = ['node', '--max-old-space-size-percentage=50', ...NODE_FLAGS.sidecar, PROGRAM] as const
export const ROUTES_PATH = '/etc/portcullis/routes'
/** The folder where the Secret named by the Pod is mounted, as for `keys_file: /etc/portcullis/secrets/sign-in.keys`. */
export const SECRETS_PATH = '/etc/portcullis/secrets'
export const AUTHORITIES_PATH = '/etc/portcullis/authorities'
/** The flag that opens a path to peers, like `open_paths` of a route file. */
export const OPEN_FLAG = '--open='
/** The flag with the settings that the platform makes for every route file. */
export const PLATFORM_FLAG = '--platform='
/** The folder of control sockets, by which `preStop` tells a sidecar that its Pod ends. No other container mounts it. */
const CONTROL_PATH = '/run/portcullis'
/** How many seconds the sidecar still accepts connections after the Pod begins to end, until endpoints no longer list the Pod. */
export const WITHDRAW_SECONDS = 5
/** Folder of the token that authenticates the sidecar to the PDP: `token_file` of a route file names `token` in it. */
export const TOKEN_PATH = '/var/run/secrets/portcullis'
// The token is for the PDP only: the PDP accepts no other audience, and the API server refuses this one.
export const TOKEN_AUDIENCE = 'portcullis-pdp'
// Another volume is mounted at this path, because else admission would mount the app's API token there.
const API_TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'

export type Sidecar = {
  readonly name: string
  readonly portName: string
  /** The app's port gets this name when the sidecar takes its name; at most 15 characters. */
  readonly hiddenName: string
  readonly dataPort: number
  readonly adminPort: number
  readonly container: JsonObject
}

export function sidecarName(index: number): string {
  return index === 0 ? `${RESERVED}sidecar` : `${RESERVED}sidecar-${index + 1}`
}

/** The sidecars that a Pod asks for: their ports, and the Secret with their files. */
export type WantedSidecars = {
  readonly ports: readonly string[]
  readonly secrets: string | null
  /** Paths that scrapers read through the first sidecar. */
  readonly scrape?: readonly string[]
  /** Replaces the resources of the settings. */
  readonly resources?: JsonObject
}

export function buildSidecars(wanted: WantedSidecars, config: InjectorConfig): readonly Sidecar[] {
  const { ports, secrets, scrape = [], resources = config.resources } = wanted
  return ports.map((portName, index) => {
    const hiddenName = portName.length <= 11 ? `app-${portName}` : `app-${index + 1}`
    const sidecar = { name: sidecarName(index), portName, hiddenName, ...portsAt(config.port, index) }
    const made = { index, config, hasSecrets: secrets !== null, scrape: index === 0 ? scrape : [], resources }
    return { ...sidecar, container: containerOf(sidecar, made) }
  })
}

export function buildVolumes(
  { routes, secrets }: { readonly routes: string; readonly secrets: string | null },
  config: InjectorConfig,
): readonly JsonObject[] {
  const token = { path: 'token', audience: TOKEN_AUDIENCE, expirationSeconds: 3600 }
  return [
    { name: `${RESERVED}routes`, configMap: { name: routes, defaultMode: 420 } },
    // The default mode does not matter: the kubelet sets the token's mode for the container's user.
    { name: `${RESERVED}token`, projected: { sources: [{ serviceAccountToken: token }], defaultMode: 420 } },
    // The volume is in memory: one on the node's disk would keep the cluster autoscaler from removing the node.
    { name: `${RESERVED}control`, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
    ...(config.authorities === null
      ? []
      : [{ name: `${RESERVED}authorities`, configMap: { name: config.authorities, defaultMode: 420 } }]),
    // Readable for all users, because the container's user owns no file here. No other container may mount the volume.
    ...(secrets === null ? [] : [{ name: `${RESERVED}secrets`, secret: { secretName: secrets, defaultMode: 420 } }]),
  ]
}

function containerOf(
  sidecar: Omit<Sidecar, 'container'>,
  {
    index,
    config,
    hasSecrets,
    scrape,
    resources,
  }: {
    index: number
    config: InjectorConfig
    hasSecrets: boolean
    scrape: readonly string[]
    resources: JsonObject
  },
): JsonObject {
  const adminName = index === 0 ? 'sidecar-admin' : `sidecar-admin-${index + 1}`
  return {
    name: sidecar.name,
    image: config.image,
    imagePullPolicy: config.imagePullPolicy,
    ...(config.nativeSidecars && { restartPolicy: 'Always' }),
    command: [...COMMAND],
    args: [
      'run',
      `--file=${ROUTES_PATH}/${sidecar.portName}.yaml`,
      `--listen=:${sidecar.dataPort}`,
      `--admin-listen=:${sidecar.adminPort}`,
      ...(config.platform === null ? [] : [`${PLATFORM_FLAG}${config.platform}`]),
      ...scrape.map((path) => `${OPEN_FLAG}${path}=${config.scrapers.join(',')}`),
    ],
    ports: [
      { name: sidecar.portName, containerPort: sidecar.dataPort, protocol: 'TCP' },
      { name: adminName, containerPort: sidecar.adminPort, protocol: 'TCP' },
    ],
    env: environmentOf(sidecar.name, config),
    startupProbe: probe('/startz', sidecar.adminPort, { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe('/readyz', sidecar.adminPort, { periodSeconds: 5, failureThreshold: 2 }),
    // A restart loses all connections through the sidecar, so only a blocked event loop leads to one.
    livenessProbe: probe('/livez', sidecar.adminPort, { periodSeconds: 10, failureThreshold: 6 }),
    // With a mere `sleep`, clients would use their open connections until the app has ended.
    lifecycle: { preStop: { exec: { command: ['node', PROGRAM, 'withdraw', `--seconds=${WITHDRAW_SECONDS}`] } } },
    resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      ...(config.runAsUser !== null && { runAsUser: config.runAsUser, runAsGroup: config.runAsUser }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: `${RESERVED}routes`, mountPath: ROUTES_PATH, readOnly: true },
      { name: `${RESERVED}token`, mountPath: TOKEN_PATH, readOnly: true },
      { name: `${RESERVED}token`, mountPath: API_TOKEN_PATH, readOnly: true },
      { name: `${RESERVED}control`, mountPath: CONTROL_PATH },
      ...(config.authorities === null
        ? []
        : [{ name: `${RESERVED}authorities`, mountPath: AUTHORITIES_PATH, readOnly: true }]),
      ...(hasSecrets ? [{ name: `${RESERVED}secrets`, mountPath: SECRETS_PATH, readOnly: true }] : []),
    ],
  }
}

/** The environment of the container. The policy for Pods compares it in this order. */
function environmentOf(name: string, config: InjectorConfig): readonly JsonObject[] {
  const { egressProxy: proxy } = config
  return [
    { name: 'PORTCULLIS_LOG_LEVEL', value: config.logLevel },
    { name: 'PORTCULLIS_SIDECAR_CONTROL', value: `${CONTROL_PATH}/${name}.sock` },
    // The authorities of issuers' private certificates. For the PDP and the app, the route file names the authorities.
    ...(config.authorities === null ? [] : [{ name: 'NODE_EXTRA_CA_CERTS', value: `${AUTHORITIES_PATH}/ca.crt` }]),
    ...fromSecret('REDIS_URL', config.redis),
    ...fromSecret('PORTCULLIS_DPOP_NONCE_SECRET', config.dpopNonces),
    ...(config.tracesEndpoint === null ? [] : [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: config.tracesEndpoint }]),

    ...(proxy === null ? [] : [{ name: 'HTTPS_PROXY', value: proxy.url }]),
    // The API server would drop an empty value.
    ...(proxy === null || proxy.noProxy === '' ? [] : [{ name: 'NO_PROXY', value: proxy.noProxy }]),
  ]
}

/** The key is not optional: a replica without the shared store would accept a used proof again. */
const fromSecret = (name: string, secret: SecretKey | null): readonly JsonObject[] =>
  secret === null ? [] : [{ name, valueFrom: { secretKeyRef: { name: secret.name, key: secret.key } } }]

function probe(path: string, port: number, every: { periodSeconds: number; failureThreshold: number }): JsonObject {
  return { httpGet: { path, port, scheme: 'HTTP' }, timeoutSeconds: 1, successThreshold: 1, ...every }
}

/** Members of a sidecar's container that admission changes for reasons of its own: LimitRanger, VPA, AlwaysPullImages. */
export const ADJUSTABLE: readonly string[] = ['resources', 'imagePullPolicy']

/** The status annotation's text, for people; the injector never reads it. */
export function describeSidecars(sidecars: readonly Sidecar[], appPorts: ReadonlyMap<string, number>): string {
  const ports = Object.fromEntries(
    sidecars.map(({ portName, dataPort }) => [portName, { sidecar: dataPort, app: appPorts.get(portName) ?? null }]),
  )
  return JSON.stringify({ by: `${PREFIX}v1`, ports })
}
