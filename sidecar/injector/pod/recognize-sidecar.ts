/** Recognizes a sidecar among a Pod's containers, whatever the injector's settings were when it was made. Its name proves nothing. */
import { LOG_LEVELS } from '../../../pdp/shared/process/log.ts'
import { readWishes } from './annotations.ts'
import type { InjectorConfig, SecretKey } from './config.ts'
import { isObject, type Json, type JsonObject, listAt, numberAt, objectAt, ShapeError, textAt } from './json.ts'
import { differences } from './place-sidecars.ts'
import type { Container, Pod } from './pod.ts'
import { DEFAULT_PORT } from './ports.ts'
import { buildSidecars, OPEN_FLAG, PLATFORM_FLAG, RESERVED } from './sidecar-container.ts'

export const hasSidecarName = ({ name }: Pick<Container, 'name'>): boolean => name.startsWith(RESERVED)

/** True if all members equal those of the sidecar that the Pod's annotations ask for. */
export function isSidecar(container: Container, pod: Pod): boolean {
  if (!hasSidecarName(container)) return false
  const wishes = readWishes(pod)
  if ('issue' in wishes) return false
  try {
    const { secrets, scrape } = wishes
    const sidecars = buildSidecars({ ports: wishes.ports ?? [], secrets, scrape }, settingsOf(container, pod))
    const sidecar = sidecars.find(({ name }) => name === container.name)
    return sidecar !== undefined && differences(container.raw, sidecar.container).length === 0
  } catch (err) {
    if (err instanceof ShapeError) return false
    throw err
  }
}

/** The two names of the port that a sidecar covers: the sidecar's own, taken from the app, and the new name for the app. */
export function coveredBy({ name, ports }: Container): readonly { portName: string; hiddenName: string }[] {
  const portName = ports[0]?.name ?? null
  const hidden = portName === null || portName.length > 11 ? numberOf(name) : portName
  return portName === null ? [] : [{ portName, hiddenName: `app-${hidden}` }]
}

/** The first port of the injector that made the sidecar. */
export const firstPortOf = ({ name, ports }: Pick<Container, 'name' | 'ports'>): number =>
  ports[0] === undefined ? DEFAULT_PORT : ports[0].number - numberOf(name) + 1

/** The sidecar's number in its Pod, counted from one. */
const numberOf = (name: string): number => Number(/-(\d)$/.exec(name)?.[1] ?? 1)

/** The settings of an injector that may have made the container. Throws ShapeError. */
function settingsOf(container: Container, pod: Pod): InjectorConfig {
  const { list, raw } = container
  const env = listAt(raw.env, 'env').map((item) => objectAt(item, 'env'))
  const variable = (name: string): JsonObject => env.find((one) => one.name === name) ?? {}
  const authorities = pod.volumes.find(({ name }) => name === `${RESERVED}authorities`)
  const args = listAt(raw.args, 'args').map(String)
  const opened = args.find((arg) => arg.startsWith(OPEN_FLAG))
  const proxy = textAt(variable('HTTPS_PROXY').value, 'value')
  const level = variable('PORTCULLIS_LOG_LEVEL').value
  return {
    image: textAt(raw.image, 'image') ?? '',
    imagePullPolicy: 'IfNotPresent',
    port: firstPortOf(container),
    nativeSidecars: list === 'initContainers',
    runAsUser: numberAt(objectAt(raw.securityContext, 'securityContext').runAsUser, 'runAsUser'),
    resources: {},
    resourceBounds: { cpu: { min: '0', max: '0' }, memory: { min: '0', max: '0' } },
    scrapers: opened?.slice(opened.lastIndexOf('=') + 1).split(',') ?? [],
    authorities: textAt(objectAt(authorities?.raw.configMap, 'configMap').name, 'name'),
    redis: secretOf(variable('REDIS_URL').valueFrom),
    dpopNonces: secretOf(variable('PORTCULLIS_DPOP_NONCE_SECRET').valueFrom),
    imagePullSecrets: [],
    logLevel: LOG_LEVELS.find((known) => known === level) ?? 'info',
    tracesEndpoint: textAt(variable('OTEL_EXPORTER_OTLP_ENDPOINT').value, 'value'),
    egressProxy: proxy === null ? null : { url: proxy, noProxy: textAt(variable('NO_PROXY').value, 'value') ?? '' },
    platform: platformOf(args),
  }
}

/** The platform's text in a sidecar's arguments; null: none. */
export const platformOf = (args: readonly string[]): string | null =>
  args.find((arg) => arg.startsWith(PLATFORM_FLAG))?.slice(PLATFORM_FLAG.length) ?? null

function secretOf(source: Json | undefined): SecretKey | null {
  const reference = isObject(source) ? source.secretKeyRef : undefined
  if (!isObject(reference)) return null
  return { name: textAt(reference.name, 'name') ?? '', key: textAt(reference.key, 'key') ?? '' }
}
