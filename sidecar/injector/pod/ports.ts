/** The port numbers of the sidecars of a Pod: all follow from the first, which the injector's settings name. */
import { PORTS_COUNT_MAX } from './annotations.ts'

export const DEFAULT_PORT = 15_080
/** The distance from a sidecar's data port to its port for metrics and probes. */
const ADMIN_DISTANCE = 14
const PORT_MIN = 1024
const LAST = ADMIN_DISTANCE + PORTS_COUNT_MAX - 1
const PORT_MAX = 65_535 - LAST

/** Ports that the sidecars and proxies of meshes listen on in a Pod, by their documentation. The chart has the same list. */
export const MESH_PORTS: { readonly [mesh: string]: readonly number[] } = {
  Istio: [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090],
  Linkerd: [4_140, 4_143, 4_190, 4_191],
  Consul: [8_300, 8_301, 8_500, 8_502, 19_000, 20_000, 20_200, 20_600],
  Dapr: [3_500, 7_777, 9_090, 50_001, 50_002],
  Kuma: [9_000, 9_901, 9_902, 15_001, 15_006, 15_010, 15_053],
}

/** The ports of the sidecar with this index; `first` is the data port of the first sidecar. */
export const portsAt = (first: number, index: number): { readonly dataPort: number; readonly adminPort: number } => ({
  dataPort: first + index,
  adminPort: first + ADMIN_DISTANCE + index,
})

/** True for the ports of as many sidecars as a Pod may have, even unused ones. */
export const isSidecarPort = (port: number, first: number): boolean =>
  [first, first + ADMIN_DISTANCE].some((least) => port >= least && port < least + PORTS_COUNT_MAX)

/** All ports of sidecars in words, such as 15080 to 15083 and 15094 to 15097. */
export function describePorts(first: number): string {
  const last = PORTS_COUNT_MAX - 1
  return `${first} to ${first + last} and ${first + ADMIN_DISTANCE} to ${first + LAST}`
}

/** The value of the label of a Pod with so many sidecars. Network policies select it, so that they open only ports that the Pod has. */
export const markOf = (count: number, first: number): string =>
  first === DEFAULT_PORT ? String(count) : `${count}-from-${first}`

/** Reads the first port. Throws an Error whose message says what is wrong with it. */
export function readFirstPort(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < PORT_MIN || value > PORT_MAX)
    throw new Error(`must be a number from ${PORT_MIN} to ${PORT_MAX}`)
  for (const [mesh, ports] of Object.entries(MESH_PORTS)) {
    const taken = ports.find((port) => isSidecarPort(port, value))
    if (taken !== undefined)
      throw new Error(
        `gives sidecars the ports ${describePorts(value)}, and ${taken} is a port of ${mesh}; choose another`,
      )
  }
  return value
}
