/** What acts on the objects of a cluster: the real controllers, the real scheduler, and nodes of kwok, whose Pods run in name only. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, listAt, objectAt } from '../../../sidecar/injector/pod/json.ts'
import type { Controllers } from '../binaries.ts'
import { type ControlPlane, start, stop } from '../control-plane.ts'

const NODES = ['node-1', 'node-2', 'node-3'] as const
/** How Pods behave on these nodes. */
const POD_STAGES = 'test/cluster/controllers/kwok.yaml'
const START_TIMEOUT_MS = 60_000

/** `address` is that of the nodes. Closes the control plane and throws with the end of a log when the nodes take no Pods. */
export async function startControllers(
  plane: ControlPlane,
  { programs, address }: { programs: Controllers; address: string },
): Promise<{ close(): Promise<void> }> {
  const { kube, kubeconfig, folder } = plane
  const children: ChildProcess[] = []
  const close = async (): Promise<void> => {
    for (const child of children.toReversed()) await stop(child)
  }
  const run = (name: Exclude<keyof Controllers, 'stages'>, ...flags: readonly string[]): void => {
    const words = [`--kubeconfig=${kubeconfig}`, ...flags]
    children.push(start(programs[name], words, join(folder, `${name}.log`)))
  }
  // Port 0: none of them listens.
  const alone = ['--leader-elect=false', '--secure-port=0', '--kube-api-qps=500', '--kube-api-burst=1000']
  run(
    'kube-controller-manager',
    ...alone,
    `--root-ca-file=${join(folder, 'ca.crt')}`,
    `--service-account-private-key-file=${join(folder, 'accounts.key')}`,
  )
  run('kube-scheduler', ...alone)
  const stages = [...programs.stages, POD_STAGES].join(',')
  run('kwok', '--manage-all-nodes', `--node-ip=${address}`, `--config=${stages}`)
  for (const name of NODES) {
    const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-of-${name}` }
    await kube.must('POST', '/api/v1/nodes', { metadata: { name, labels } })
  }
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await takePods(plane))) {
    const ended = children.some(({ exitCode }) => exitCode !== null)
    if (ended || Date.now() > deadline) {
      const logs = ['kube-controller-manager', 'kube-scheduler', 'kwok'].map(
        (name) => `${name}: ${readFileSync(join(folder, `${name}.log`), 'utf8').slice(-1_000)}`,
      )
      await close()
      await plane.close()
      throw new Error(`the nodes take no Pods: ${logs.join('\n')}`)
    }
    await delay(100)
  }
  return { close }
}

/** Whether kwok made the nodes ready, and the controllers took the taint away that said otherwise. */
async function takePods({ kube }: ControlPlane): Promise<boolean> {
  const { items } = await kube.must('GET', '/api/v1/nodes')
  return listAt(items, 'items').every((node) => {
    const { spec, status } = objectAt(node, 'node')
    const conditions = listAt(objectAt(status, 'status').conditions, 'conditions').filter((item) => isObject(item))
    const isReady = conditions.some(({ type, status: said }) => type === 'Ready' && said === 'True')
    return isReady && listAt(objectAt(spec, 'spec').taints, 'taints').length === 0
  })
}
