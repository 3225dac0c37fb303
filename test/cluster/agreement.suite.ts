/** Injector and backstop are two judges, in two languages: over random Pods, what the one makes the other passes, and bare ones not. */
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject as given, test } from 'vitest'
import { type InjectorConfig, parseInjectorConfig } from '../../sidecar/injector/pod/config.ts'
import { inject } from '../../sidecar/injector/pod/inject.ts'
import type { Mode } from '../../sidecar/injector/pod/injection.ts'
import { isObject, type JsonObject, listAt, objectAt, ShapeError, textsAt } from '../../sidecar/injector/pod/json.ts'
import { applyPatch, type PatchOperation } from '../../sidecar/injector/pod/patch.ts'
import { parsePod } from '../../sidecar/injector/pod/pod.ts'
import { FORGERIES, HARMLESS } from '../sidecar/injector/pod/forgeries.ts'
import { anyPod, podWith } from '../sidecar/injector/pod/pods.ts'
import { type Cluster, installWords, NAMESPACE, startCluster } from './cluster.ts'
import type { KubeAnswer } from './kube-client.ts'

const MODES: readonly Mode[] = ['enabled', 'required']
const RUNS = 600
let cluster: Cluster
let config: InjectorConfig

beforeAll(async () => {
  cluster = await startCluster(given('binaries'))
  await cluster.namespace(NAMESPACE)
  const authority = await cluster.certify('first')
  cluster.helm(...installWords('install', authority, ['--set', 'injector.webhook.failurePolicy=Ignore']))
  const map = await cluster.kube.must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/portcullis-injector`)
  config = parseInjectorConfig(textsAt(map.data, 'data').get('injector.yaml') ?? '', 'injector.yaml')
  for (const mode of MODES) await cluster.namespace(mode, { 'portcullis.dev/inject': mode })
  await cluster.namespace('free')
  while ((await send('required', podWith({ annotations: {} }))).status === 201) await delay(100)
})
afterAll(() => cluster?.close())

const send = (namespace: string, { metadata, spec }: JsonObject): Promise<KubeAnswer> =>
  cluster.kube.send('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
    metadata: { ...objectAt(metadata, 'metadata'), name: 'any' },
    spec: spec ?? null,
  })
const refusedByUs = ({ body }: KubeAnswer): boolean => String(body.message).includes('ValidatingAdmissionPolicy')

/** What Kubernetes needs and the random Pods leave out: volumes that are mounted, images, names that differ. */
function completed(pod: JsonObject): JsonObject {
  const spec = objectAt(pod.spec, 'spec')
  const seen = new Set<string>()
  const containers = (list: string): JsonObject[] =>
    listAt(spec[list], list)
      .filter(isObject)
      .filter(({ name }) => !seen.has(String(name)) && seen.add(String(name)))
      .map(({ readinessProbe, livenessProbe, startupProbe, lifecycle, volumeMounts, ...rest }) => ({
        ...rest,
        image: rest.image ?? 'app:1',
        ...(list === 'containers' && { readinessProbe: readinessProbe ?? null }),
      }))
  const volumes = listAt(spec.volumes, 'volumes').filter(isObject)
  return {
    ...pod,
    spec: {
      ...spec,
      containers: containers('containers'),
      initContainers: containers('initContainers'),
      volumes: volumes.filter(({ name }, at) => volumes.findIndex((one) => one.name === name) === at),
    },
  }
}

test('what the injector makes, or lets be, the backstop passes; what it refuses, the backstop refuses bare', async () => {
  const counts = { inject: 0, skip: 0, deny: 0 }
  await fc.assert(
    fc.asyncProperty(anyPod.map(completed), fc.constantFrom(...MODES), async (pod, mode) => {
      // Kubernetes itself has its rules: what it refuses anywhere says nothing of ours.
      if ((await send('free', pod)).status !== 201) return
      const injection = inject(pod, { config, mode })
      const result = injection.verdict === 'inject' ? applyPatch(pod, injection.operations) : pod
      const answer = await send(mode, result)
      counts[injection.verdict] += 1
      if (injection.verdict === 'deny') {
        if (refusedByUs(answer)) return
        // Mistakes in wishes are the injector's to name. Where a sidecar is required, none of them is a way to serve without.
        expect(injection.code).toBe('wish_invalid')
        if (mode === 'required') expect(parsePod(pod).containers.flatMap(({ ports }) => ports)).toEqual([])
      } else expect([answer.status, answer.body.message]).toEqual([201, undefined])
    }),
    { numRuns: RUNS, seed: 6 },
  )
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(5)
}, 300_000)

describe('of a Pod that the injector made and its author changed, both say the same:', () => {
  const ASKING_POD = podWith({ labels: {} })
  async function judged(mode: Mode, changes: readonly PatchOperation[]) {
    const made = inject(ASKING_POD, { config, mode })
    if (made.verdict !== 'inject') throw new Error(JSON.stringify(made))
    const forged = applyPatch(applyPatch(ASKING_POD, made.operations), changes)
    // What Kubernetes itself refuses, nobody can have.
    const free = await send('free', forged)
    const again = inject(forged, { config, mode })
    const asItMustBe = again.verdict === 'inject' && again.operations.length === 0
    return { possible: free.status === 201, asItMustBe, answer: await send(mode, forged) }
  }

  // In `enabled` these are the author's own affair.
  const FREE_WHERE_ENABLED = [
    'a container before it',
    'a port that nobody named',
    'shared processes',
    'the processes of the node',
  ]
  const impossible: string[] = []
  for (const mode of MODES)
    test.each(FORGERIES)(`${mode}: %s`, async (what, changes) => {
      const { possible, asItMustBe, answer } = await judged(mode, changes)
      const free = mode === 'enabled' && FREE_WHERE_ENABLED.includes(what)
      expect(asItMustBe).toBe(free)
      if (!possible) impossible.push(what)
      else if (free) expect([answer.status, answer.body.message]).toEqual([201, undefined])
      else expect([answer.status, answer.body.message]).toEqual([422, expect.stringContaining('ValidatingAdmission')])
    })

  test.each(HARMLESS)('%s', async (_what, changes) => {
    for (const mode of MODES) {
      const { asItMustBe, answer } = await judged(mode, changes)
      expect([asItMustBe, answer.status, answer.body.message]).toEqual([true, 201, undefined])
    }
  })

  test('nearly every change is one that Kubernetes would take', () => {
    expect(new Set(impossible).size).toBeLessThan(FORGERIES.length / 5)
  })

  test('also for random sets of changes', async () => {
    const counts = { passed: 0, refused: 0 }
    const some = fc.uniqueArray(fc.constantFrom(...FORGERIES, ...HARMLESS, ...HARMLESS, ...HARMLESS), { maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(some, fc.constantFrom(...MODES), async (chosen, mode) => {
        const outcome = await judged(
          mode,
          chosen.flatMap(([, changes]) => changes),
        ).catch((err: unknown) => {
          // Two changes that do not fit together.
          if (err instanceof ShapeError) return null
          throw err
        })
        if (outcome === null || !outcome.possible) return
        counts[outcome.asItMustBe ? 'passed' : 'refused'] += 1
        expect(outcome.answer.status).toBe(outcome.asItMustBe ? 201 : 422)
      }),
      { numRuns: RUNS, seed: 7 },
    )
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(20)
  }, 300_000)
})
