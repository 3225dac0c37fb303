/** What `check-cluster` says while Pods move to other ports of sidecars. */
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'
import {
  CLOSED,
  checkCluster,
  codes,
  named,
  namespace,
  policy,
  protectedPod,
  SIDECARS_ONLY,
  service,
  settings,
} from './cluster-objects.ts'
import { GUARD } from './guard-objects.ts'

describe('ports of sidecars that were changed', () => {
  const only = policy('sidecars', {
    podSelector: { matchLabels: { 'portcullis.dev/injected': '1-from-16080' } },
    ingress: [{ ports: [{ port: 16_080 }] }],
  })
  const moved = [...GUARD, namespace('enabled'), protectedPod({}, 16_080), only, settings({ port: 16_080 })]
  const find = (...objects: readonly JsonObject[]): readonly string[] =>
    codes(...objects).filter((code) => code !== 'routes_missing')

  test('are found in the Pod, and its former ones are not its own', () => {
    expect(find(...moved, service('s', { port: 80, targetPort: 16_080 }))).toEqual([])
    expect(find(...moved, service('s', { port: 80, targetPort: 15_080 }))).toEqual(['service_bypass'])
    const headless = named('Service', 's', {
      spec: { clusterIP: 'None', selector: { app: 'invoices' }, ports: [{ port: 15_080, targetPort: 'http' }] },
    })
    expect(checkCluster([...moved, headless]).map(({ message }) => message)).toContainEqual(
      expect.stringContaining('set its port to 16080'),
    )
  })

  test('are those of the injector, whatever a ConfigMap of a team says before it', () => {
    const others = settings({ port: 15_080 }, 'a-team')
    const old = [...GUARD, namespace('enabled'), others, protectedPod(), SIDECARS_ONLY, settings({ port: 16_080 })]
    expect(find(...old)).toEqual(['sidecar_outdated'])
  })

  test('make a Pod with the former ones outdated, and a policy that opens the new ones there one past the sidecar', () => {
    const old = [...GUARD, namespace('enabled'), protectedPod(), SIDECARS_ONLY, settings({ port: 16_080 })]
    expect(find(...old)).toEqual(['sidecar_outdated'])
    const open = policy('p', { podSelector: {}, ingress: [{ ports: [{ port: 16_080 }] }] })
    expect(find(...old, open)).toEqual(['policy_bypass', 'sidecar_outdated'])
  })

  const old = [...GUARD, namespace('enabled'), protectedPod(), SIDECARS_ONLY, settings({ port: 16_080 })]
  const headless = (port: number): JsonObject =>
    named('Service', 's', {
      spec: { clusterIP: 'None', selector: { app: 'invoices' }, ports: [{ port, targetPort: 'http' }] },
    })
  test.each([
    ['by number', service('s', { port: 80, targetPort: 15_080 }), 'set targetPort to the name'],
    ['by its own number', service('s', { port: 15_080 }), 'set targetPort to the name'],
    ['to the probes', service('s', { port: 80, targetPort: 15_094 }), 'set targetPort to the name'],
    ['without an address', headless(15_080), 'clients must dial the new port'],
  ])('name a Service that leads to the former ones %s before its Pods restart', (_what, object, said) => {
    const found = checkCluster([...old, object]).find((one) => one.object === 'Service/s')
    expect([found?.code, found?.message]).toEqual(['sidecar_outdated', expect.stringContaining(said)])
  })
  test.each([
    ['by name', [...old, service('s', { port: 15_080, targetPort: 'http' })]],
    ['to other Pods', [...old, service('s', { port: 80, targetPort: 15_080 }, { app: 'other' })]],
    ['whose settings are unknown', [...old.slice(0, -1), service('s', { port: 80, targetPort: 15_080 })]],
    ['that did not change', [...CLOSED, settings({ port: 15_080 }), service('s', { port: 80, targetPort: 15_080 })]],
  ])('name no Service %s', (_what, objects) => {
    expect(checkCluster(objects).filter((one) => one.object === 'Service/s')).toEqual([])
  })
})
