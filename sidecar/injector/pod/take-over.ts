/** The takeover of named ports: the gate gets the name that Services use, the app keeps its number under another name. */
import { type Gate, isGatePort } from './gate.ts'
import { type Denial, deny } from './injection.ts'
import { pointer } from './json.ts'
import type { PatchOperation } from './patch.ts'
import type { Container, Port } from './pod.ts'

export type Takeover = {
  readonly operations: readonly PatchOperation[]
  /** Of each port that is taken over now. */
  readonly appPorts: ReadonlyMap<string, number>
}
type Held = { readonly container: Container; readonly port: Port; readonly at: number }

/** `apps`: every container that is no gate. `present`: gates that stand in the Pod already. */
export function takeOver(
  apps: readonly Container[],
  { gates, present }: { gates: readonly Gate[]; present: readonly Gate[] },
): Takeover | Denial {
  const ports: readonly Held[] = apps.flatMap((container) =>
    container.ports.map((port, at) => ({ container, port, at })),
  )
  const taken = ports.find(({ port }) => isGatePort(port.number))
  if (taken !== undefined)
    return deny('port_taken', `port ${taken.port.number} of ${taken.container.name} is in the gates' range`)
  const onNode = ports.find(({ port }) => port.hostPort !== null)
  if (onNode !== undefined)
    return deny(
      'port_unfit',
      `port ${onNode.port.number} of ${onNode.container.name} has a hostPort, which passes by the gate`,
    )
  const operations: PatchOperation[] = []
  const appPorts = new Map<string, number>()
  for (const gate of gates) {
    const behind = ports.filter(({ port }) => port.name === gate.hiddenName)
    const holders = ports.filter(({ port }) => port.name === gate.portName)
    const gated = present.includes(gate) ? behind : holders
    const odd = present.includes(gate) ? findOddPresent(gate, { holders, behind }) : findOdd(gate, { holders, behind })
    if (odd !== null) return odd
    for (const held of gated) {
      const unfit = findUnfit(held, { portName: gate.portName, ports })
      if (unfit !== null) return unfit
      if (present.includes(gate)) continue
      appPorts.set(gate.portName, held.port.number)
      operations.push(...takeName(held, gate))
    }
  }
  return { operations, appPorts }
}

type Named = { readonly holders: readonly Held[]; readonly behind: readonly Held[] }

function findOdd({ portName, hiddenName }: Gate, { holders, behind }: Named): Denial | null {
  if (holders.length === 0) return deny('port_missing', `no container has a port named ${portName}`)
  // Which of two an endpoint takes is not defined: the other would be open.
  if (holders.length > 1) return deny('port_repeated', `${holders.length} ports are named ${portName}`)
  if (behind.length > 0) return deny('port_repeated', `port name ${hiddenName} is needed for the app behind its gate`)
  return null
}

function findOddPresent({ portName, hiddenName }: Gate, { holders, behind }: Named): Denial | null {
  if (holders.length > 0) return deny('port_repeated', `a container beside the gate has a port named ${portName}`)
  if (behind.length > 1) return deny('port_repeated', `${behind.length} ports are named ${hiddenName}`)
  return null
}

function findUnfit(
  { port, container }: Held,
  { portName, ports }: { portName: string; ports: readonly Held[] },
): Denial | null {
  if (port.protocol !== 'TCP') return deny('port_unfit', `port ${portName} of ${container.name} is not TCP`)
  const twin = ports.find((other) => other.port !== port && other.port.number === port.number)
  if (twin !== undefined)
    return deny(
      'port_repeated',
      `port ${port.number} of ${twin.container.name} is behind the gate of ${portName} under another name`,
    )
  return null
}

function takeName({ container, port, at }: Held, gate: Gate): readonly PatchOperation[] {
  const root = ['spec', container.list, container.index]
  const named = container.references.filter(({ portName }) => portName === gate.portName)
  return [
    { op: 'test', path: pointer(...root, 'ports', at, 'name'), value: gate.portName },
    { op: 'replace', path: pointer(...root, 'ports', at, 'name'), value: gate.hiddenName },
    // A probe by name would ask the gate, which knows nothing of the app's health.
    ...named.map(({ path }) => ({ op: 'replace', path: pointer(...root, ...path), value: port.number }) as const),
  ]
}
