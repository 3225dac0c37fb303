/** What happens to the primary, or to what watches over it. */
import { setTimeout as delay } from 'node:timers/promises'
import { type HaCluster, type Member, signalServer } from './cluster.ts'

/** `begin` returns what makes the cluster whole again, after `lastsMs`. */
export type HaFault = {
  readonly name: string
  readonly lastsMs: number
  /** A used proof may be taken once more: Redis acknowledges before its replica has it. */
  readonly forgetsProofs?: true
  begin(cluster: HaCluster, primary: Member): Promise<() => Promise<void>> | (() => Promise<void>)
}

async function restart({ agent }: Member): Promise<void> {
  agent.signal('SIGCONT')
  agent.signal('SIGKILL')
  await agent.ended()
  await agent.start()
}

async function restartNode(member: Member): Promise<void> {
  signalServer(member, 'SIGCONT')
  signalServer(member, 'SIGKILL')
  await delay(500)
  await restart(member)
}

export const HA_FAULTS: readonly HaFault[] = [
  {
    name: 'switchover',
    lastsMs: 8_000,
    async begin(_cluster, { name, restPort }) {
      const body = JSON.stringify({ leader: name })
      await fetch(`http://127.0.0.1:${restPort}/switchover`, { method: 'POST', body })
      return async () => undefined
    },
  },
  {
    name: 'postgres-killed',
    lastsMs: 15_000,
    begin(_cluster, primary) {
      signalServer(primary, 'SIGKILL')
      return async () => undefined
    },
  },
  {
    name: 'node-killed',
    lastsMs: 32_000,
    begin(_cluster, primary) {
      primary.agent.signal('SIGKILL')
      signalServer(primary, 'SIGKILL')
      return () => restart(primary)
    },
  },
  {
    name: 'agent-killed',
    lastsMs: 35_000,
    begin(_cluster, primary) {
      process.kill(primary.agent.pid(), 'SIGKILL') // its PostgreSQL goes on
      return () => restartNode(primary)
    },
  },
  {
    name: 'agent-frozen',
    lastsMs: 35_000,
    begin(_cluster, primary) {
      process.kill(primary.agent.pid(), 'SIGSTOP')
      return () => restartNode(primary)
    },
  },
  {
    name: 'agent-cut-off',
    lastsMs: 35_000,
    begin(_cluster, { link }) {
      link.spoil('half-open')
      return async () => link.spoil(null)
    },
  },
  {
    // From etcd and from the standbys, and not from who asks it.
    name: 'primary-cut-off',
    lastsMs: 35_000,
    begin(_cluster, { link, fromMembers }) {
      for (const one of [link, ...fromMembers]) one.spoil('half-open')
      return async () => {
        for (const one of [link, ...fromMembers]) one.spoil(null)
      }
    },
  },
  {
    name: 'postgres-frozen',
    lastsMs: 35_000,
    begin(_cluster, primary) {
      signalServer(primary, 'SIGSTOP')
      return async () => signalServer(primary, 'SIGCONT')
    },
  },
  {
    name: 'node-frozen',
    lastsMs: 40_000,
    begin(_cluster, primary) {
      process.kill(primary.agent.pid(), 'SIGSTOP')
      signalServer(primary, 'SIGSTOP')
      return async () => {
        signalServer(primary, 'SIGCONT')
        await delay(3_000) // its PostgreSQL goes on before its agent does
        process.kill(primary.agent.pid(), 'SIGCONT')
      }
    },
  },
  {
    name: 'replication-hangs',
    lastsMs: 35_000,
    async begin({ members }, primary) {
      const standbys = members.filter((one) => one !== primary)
      for (const one of standbys) signalServer(one, 'SIGSTOP', 'walreceiver')
      await delay(3_000)
      primary.agent.signal('SIGKILL')
      signalServer(primary, 'SIGKILL')
      for (const one of standbys) signalServer(one, 'SIGCONT', 'walreceiver')
      return () => restart(primary)
    },
  },
  {
    name: 'redis-killed',
    lastsMs: 15_000,
    forgetsProofs: true,
    async begin({ redis }) {
      const part = await redis.primary()
      part.signal('SIGKILL')
      return async () => {
        await part.ended()
        await part.start() // Sentinel makes it a replica
      }
    },
  },
  {
    name: 'etcd-frozen',
    lastsMs: 25_000,
    begin({ etcd }) {
      etcd.signal('SIGSTOP')
      return async () => etcd.signal('SIGCONT')
    },
  },
]
