/** Gives the sidecar the port name that Services use; the app's port keeps its number and gets another name. */

import { ANNOTATION_PORTS } from './annotations.ts'
import { type Denial, deny } from './injection.ts'
import { pointer } from './json.ts'
import type { PatchOperation } from './patch.ts'
import type { Container, Port } from './pod.ts'
import { describePorts, isSidecarPort } from './ports.ts'
import type { Sidecar } from './sidecar-container.ts'

type PortOfContainer = { readonly container: Container; readonly port: Port; readonly at: number }

/** `apps`: every container that is not a sidecar. `present`: the sidecars that the Pod already has. `first`: the first port of sidecars. */
export function takeOver(
  apps: readonly Container[],
  { sidecars, present, first }: { sidecars: readonly Sidecar[]; present: readonly Sidecar[]; first: number },
):
  | {
      readonly operations: readonly PatchOperation[]
      /** The app's port number by port name, for the names that a sidecar takes over now. */
      readonly appPorts: ReadonlyMap<string, number>
    }
  | Denial {
  const ports: readonly PortOfContainer[] = apps.flatMap((container) =>
    container.ports.map((port, at) => ({ container, port, at })),
  )
  const taken = ports.find(({ port }) => isSidecarPort(port.number, first))
  if (taken !== undefined)
    return deny(
      'port_taken',
      `port ${taken.port.number} of ${taken.container.name} is reserved for sidecars (${describePorts(first)}); choose another`,
    )
  const onNode = ports.find(({ port }) => port.hostPort !== null)
  if (onNode !== undefined)
    return deny(
      'port_unfit',
      `port ${onNode.port.number} of ${onNode.container.name} has a hostPort, which bypasses the sidecar; remove hostPort`,
    )
  const operations: PatchOperation[] = []
  const appPorts = new Map<string, number>()
  for (const sidecar of sidecars) {
    const behind = ports.filter(({ port }) => port.name === sidecar.hiddenName)
    const holders = ports.filter(({ port }) => port.name === sidecar.portName)
    const covered = present.includes(sidecar) ? behind : holders
    const odd = present.includes(sidecar)
      ? findOddPresent(sidecar, { holders, behind })
      : findOdd(sidecar, { holders, behind })
    if (odd !== null) return odd
    for (const held of covered) {
      const unfit = findUnfit(held, { portName: sidecar.portName, ports })
      if (unfit !== null) return unfit
      if (present.includes(sidecar)) continue
      appPorts.set(sidecar.portName, held.port.number)
      operations.push(...takeName(held, sidecar))
    }
  }
  return { operations, appPorts }
}

type Named = { readonly holders: readonly PortOfContainer[]; readonly behind: readonly PortOfContainer[] }

function findOdd({ portName, hiddenName }: Sidecar, { holders, behind }: Named): Denial | null {
  if (holders.length === 0)
    return deny(
      'port_missing',
      `no container has a port named ${portName}; name the app's port so, or change annotation ${ANNOTATION_PORTS}`,
    )
  // Two ports of this name are refused: Kubernetes does not define which one an endpoint uses, so one would be unprotected.
  if (holders.length > 1)
    return deny('port_repeated', `${holders.length} ports are named ${portName}; rename all but one`)
  if (behind.length > 0)
    return deny(
      'port_repeated',
      `port name ${hiddenName} is needed for the app's port behind the sidecar; rename the port that has it`,
    )
  return null
}

function findOddPresent({ portName, hiddenName }: Sidecar, { holders, behind }: Named): Denial | null {
  if (holders.length > 0)
    return deny('port_repeated', `another container than the sidecar has a port named ${portName}; rename that port`)
  if (behind.length > 1)
    return deny('port_repeated', `${behind.length} ports are named ${hiddenName}; rename all but one`)
  return null
}

function findUnfit(
  { port, container }: PortOfContainer,
  { portName, ports }: { portName: string; ports: readonly PortOfContainer[] },
): Denial | null {
  if (port.protocol !== 'TCP')
    return deny(
      'port_unfit',
      `port ${portName} of ${container.name} is not TCP; remove it from annotation ${ANNOTATION_PORTS}`,
    )
  const twin = ports.find((other) => other.port !== port && other.port.number === port.number)
  if (twin !== undefined)
    return deny(
      'port_repeated',
      `port ${port.number} of ${twin.container.name} is behind the sidecar of ${portName} under another name; remove one of the two`,
    )
  return null
}

function takeName({ container, port, at }: PortOfContainer, sidecar: Sidecar): readonly PatchOperation[] {
  const root = ['spec', container.list, container.index]
  const named = container.references.filter(({ portName }) => portName === sidecar.portName)
  return [
    { op: 'test', path: pointer(...root, 'ports', at, 'name'), value: sidecar.portName },
    { op: 'replace', path: pointer(...root, 'ports', at, 'name'), value: sidecar.hiddenName },
    // A probe by name would reach the sidecar, which does not know whether the app is healthy.
    ...named.map(({ path }) => ({ op: 'replace', path: pointer(...root, ...path), value: port.number }) as const),
  ]
}
