/** Plays attacks on injection by the suites that have Pods and an API server, each suite once. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AttackCase, Skip, Unknown } from './case-format.ts'

type Played = {
  /** The test that plays it has its id in its name or beside its steps. */
  readonly file: string
  /** What in the chart answers it: a template, and how it names the object. */
  readonly object?: readonly [template: string, text: string]
}

const ADMISSION = 'test/cluster/admission.suite.ts'
const AROUND = 'test/cluster/around.suite.ts'
const OUTAGE = 'test/cluster/outage.suite.ts'
const IMAGE = 'test/image/image.long.test.ts'
const WEBHOOK = 'test/sidecar/injector/webhook/webhook.test.ts'
const WEBHOOKS = ['injector-objects.yaml', 'kind: MutatingWebhookConfiguration'] as const
const PODS = ['backstop-pods.yaml', 'name: {{ $name }}-pods'] as const

export const INJECTION_ATTACKS: { readonly [id: string]: Played } = {
  'K8S-001': { file: AROUND, object: ['protected-namespaces.yaml', 'name: portcullis-sidecars'] },
  'K8S-002': { file: AROUND, object: ['backstop-access.yaml', 'name: {{ $name }}-services'] },
  'K8S-003': { file: IMAGE },
  'K8S-004': { file: IMAGE },
  'K8S-005': { file: OUTAGE, object: PODS },
  'K8S-006': { file: WEBHOOK, object: WEBHOOKS },
  'K8S-007': { file: ADMISSION, object: PODS },
  'K8S-008': { file: ADMISSION, object: PODS },
  'K8S-009': { file: ADMISSION },
  'K8S-010': { file: ADMISSION, object: PODS },
  'K8S-011': { file: ADMISSION },
  'K8S-012': { file: ADMISSION },
  'K8S-013': { file: OUTAGE, object: WEBHOOKS },
  'K8S-014': { file: AROUND, object: ['backstop-access.yaml', 'name: {{ $name }}-debug'] },
  'K8S-015': { file: ADMISSION, object: ['backstop-changes.yaml', 'name: {{ $name }}-changes'] },
  'K8S-016': { file: OUTAGE },
  'K8S-017': { file: IMAGE },
  'K8S-018': { file: IMAGE },
  'K8S-019': { file: WEBHOOK },
  'K8S-020': { file: IMAGE },
  'K8S-021': { file: 'test/cluster/sidecar.suite.ts' },
}

export const isInjection = ({ id, class: kind, request }: AttackCase): boolean =>
  kind === 'injection-bypass' || request.method === 'ADMIT' || Object.hasOwn(INJECTION_ATTACKS, id)

type Ran = { readonly failed: boolean; readonly passedCount: number }
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ran = new Map<string, Ran>()

/** What is wrong. Throws Skip where the machine lacks what the suite needs. */
export async function playInjection({ id }: AttackCase): Promise<string[]> {
  const file = Object.hasOwn(INJECTION_ATTACKS, id) ? INJECTION_ATTACKS[id]?.file : undefined
  if (file === undefined) throw new Unknown('an attack on injection that no suite plays')
  if (file.startsWith('test/cluster/')) needControlPlane()
  const suite = ran.get(file) ?? runSuite(file)
  ran.set(file, suite)
  if (suite.failed) return [`${file} fails; run ${commandOf(file).join(' ')}`]
  if (suite.passedCount === 0) throw new Skip(`${file} skips all of its tests here; run ${commandOf(file).join(' ')}`)
  return []
}

function needControlPlane(): void {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-cluster', 'bin')
  const folder = process.env.KUBEBUILDER_ASSETS ?? cache
  if (!existsSync(join(folder, 'kube-apiserver')))
    throw new Skip(`${join(folder, 'kube-apiserver')} is missing; \`npm run test:cluster\` builds it`)
}

const commandOf = (file: string): string[] =>
  file.startsWith('test/cluster/') ? ['npm', 'run', 'test:cluster', '--', file] : ['npm', 'test', '--', file]

function runSuite(file: string): Ran {
  const [command = '', ...args] = commandOf(file)
  const { status, stdout } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
    maxBuffer: 64 * 1024 * 1024,
  })
  const passed = /^\s*Tests\s.*?(\d+) passed/m.exec(stdout)?.[1]
  return { failed: status !== 0, passedCount: Number(passed ?? 0) }
}
