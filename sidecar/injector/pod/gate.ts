/** The gate as it stands in a Pod: its containers and volumes, with every default said so that they can be compared. */
import { PORTS_COUNT_MAX, PREFIX } from './annotations.ts'
import type { InjectorConfig, SecretKey } from './config.ts'
import type { JsonObject } from './json.ts'

/** Container and volume names with this prefix are ours. */
export const RESERVED = 'portcullis-'
const DATA_PORT = 15_080
const ADMIN_PORT = 15_090
/**
 * Where the image keeps the program, as its Dockerfile starts it; not left to the image's own entry point. Half of the
 * container's memory limit is for lasting objects, the rest for buffers and code: below 512 MB Node itself would take more
 * than there is. The other flag is explained in bin.ts.
 */
const PROGRAM = '/app/sidecar/bin.js'
export const COMMAND = ['node', '--max-old-space-size-percentage=50', '--max-semi-space-size=4', PROGRAM] as const
export const ROUTES_PATH = '/etc/portcullis/routes'
export const AUTHORITIES_PATH = '/etc/portcullis/authorities'
/** Of the sockets over which the kubelet tells a gate that its Pod ends: a volume that no other container mounts. */
const CONTROL_PATH = '/run/portcullis'
/** Until endpoints have lost the Pod: for so long the gate still takes connections, and ends each with its answer. */
const WITHDRAW_SECONDS = 5
/** What the gate shows to the PDP: `token_file` of a route file names `token` in it. */
export const TOKEN_PATH = '/var/run/secrets/portcullis'
// The PDP takes no other, and the API server not this one.
const TOKEN_AUDIENCE = 'portcullis-pdp'
// Where admission would mount the app's own API token: a place that is taken stays free of it.
const API_TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'

export type Gate = {
  readonly name: string
  readonly portName: string
  /** Of the app's port once the gate has its name; at most 15 characters. */
  readonly hiddenName: string
  readonly dataPort: number
  readonly adminPort: number
  readonly container: JsonObject
}

export function gateName(index: number): string {
  return index === 0 ? `${RESERVED}gate` : `${RESERVED}gate-${index + 1}`
}

/** Data ports 15080 to 15083 and admin ports 15090 to 15093, whether used or not. */
export function isGatePort(port: number): boolean {
  return [DATA_PORT, ADMIN_PORT].some((first) => port >= first && port < first + PORTS_COUNT_MAX)
}

export function buildGates(ports: readonly string[], config: InjectorConfig): readonly Gate[] {
  return ports.map((portName, index) => {
    const hiddenName = portName.length <= 11 ? `app-${portName}` : `app-${index + 1}`
    const number = { dataPort: DATA_PORT + index, adminPort: ADMIN_PORT + index }
    const gate = { name: gateName(index), portName, hiddenName, ...number }
    return { ...gate, container: containerOf(gate, { index, config }) }
  })
}

export function buildVolumes(routes: string, config: InjectorConfig): readonly JsonObject[] {
  const token = { path: 'token', audience: TOKEN_AUDIENCE, expirationSeconds: 3600 }
  return [
    { name: `${RESERVED}routes`, configMap: { name: routes, defaultMode: 420 } },
    // The kubelet chooses the token's mode after the container's user, whatever the default says.
    { name: `${RESERVED}token`, projected: { sources: [{ serviceAccountToken: token }], defaultMode: 420 } },
    { name: `${RESERVED}control`, emptyDir: { sizeLimit: '1Mi' } },
    ...(config.authorities === null
      ? []
      : [{ name: `${RESERVED}authorities`, configMap: { name: config.authorities, defaultMode: 420 } }]),
  ]
}

function containerOf(
  gate: Omit<Gate, 'container'>,
  { index, config }: { index: number; config: InjectorConfig },
): JsonObject {
  const adminName = index === 0 ? 'gate-admin' : `gate-admin-${index + 1}`
  return {
    name: gate.name,
    image: config.image,
    imagePullPolicy: config.imagePullPolicy,
    ...(config.nativeSidecars && { restartPolicy: 'Always' }),
    command: [...COMMAND],
    args: [
      'run',
      `--file=${ROUTES_PATH}/${gate.portName}.yaml`,
      `--listen=:${gate.dataPort}`,
      `--admin-listen=:${gate.adminPort}`,
    ],
    ports: [
      { name: gate.portName, containerPort: gate.dataPort, protocol: 'TCP' },
      { name: adminName, containerPort: gate.adminPort, protocol: 'TCP' },
    ],
    env: [
      { name: 'PORTCULLIS_LOG_LEVEL', value: config.logLevel },
      { name: 'PORTCULLIS_SIDECAR_CONTROL', value: `${CONTROL_PATH}/${gate.name}.sock` },
      // For issuers behind certificates of their own; what speaks to the PDP and the app is told in the route file.
      ...(config.authorities === null ? [] : [{ name: 'NODE_EXTRA_CA_CERTS', value: `${AUTHORITIES_PATH}/ca.crt` }]),
      ...fromSecret('REDIS_URL', config.redis),
      ...fromSecret('PORTCULLIS_DPOP_NONCE_SECRET', config.dpopNonces),
    ],
    startupProbe: probe('/startz', gate.adminPort, { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe('/readyz', gate.adminPort, { periodSeconds: 5, failureThreshold: 2 }),
    // Only a dead event loop ends a gate: every connection through it is lost.
    livenessProbe: probe('/livez', gate.adminPort, { periodSeconds: 10, failureThreshold: 6 }),
    // Not `sleep`: clients with open connections would go on to use them until the app is gone.
    lifecycle: { preStop: { exec: { command: ['node', PROGRAM, 'withdraw', `--seconds=${WITHDRAW_SECONDS}`] } } },
    resources: config.resources,
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
    ],
  }
}

/** Not optional: without what all replicas share, each would take a proof once more. */
const fromSecret = (name: string, secret: SecretKey | null): readonly JsonObject[] =>
  secret === null ? [] : [{ name, valueFrom: { secretKeyRef: { name: secret.name, key: secret.key } } }]

function probe(path: string, port: number, every: { periodSeconds: number; failureThreshold: number }): JsonObject {
  return { httpGet: { path, port, scheme: 'HTTP' }, timeoutSeconds: 1, successThreshold: 1, ...every }
}

/** Members of a gate's container that admission changes for reasons of its own: LimitRanger, VPA, AlwaysPullImages. */
export const ADJUSTABLE: readonly string[] = ['resources', 'imagePullPolicy']

/** What the status annotation says; for people, never read back. */
export function describeGates(gates: readonly Gate[], appPorts: ReadonlyMap<string, number>): string {
  const ports = Object.fromEntries(
    gates.map(({ portName, dataPort }) => [portName, { gate: dataPort, app: appPorts.get(portName) ?? null }]),
  )
  return JSON.stringify({ by: `${PREFIX}v1`, ports })
}
