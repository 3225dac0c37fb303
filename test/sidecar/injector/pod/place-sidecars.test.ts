/** Where the sidecars stand in a Pod, what is put back in them, and which of its ports are marked as open. */
import { describe, expect, test } from 'vitest'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import type { Injection, Mode } from '../../../../sidecar/injector/pod/injection.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { parsePod } from '../../../../sidecar/injector/pod/pod.ts'
import { ASKING, CONFIG, podWith } from './pods.ts'

const ORDINARY = { ...CONFIG, nativeSidecars: false }
const judge = (pod: JsonObject, mode: Mode = 'enabled', config = CONFIG): Injection => inject(pod, { config, mode })

function injected(pod: JsonObject, mode: Mode = 'enabled', config = CONFIG): JsonObject {
  const injection = judge(pod, mode, config)
  if (injection.verdict !== 'inject') throw new Error(JSON.stringify(injection))
  return applyPatch(pod, injection.operations)
}

describe('a sidecar that another webhook changed is put back as it must be, and what differed is said:', () => {
  const SIDECAR = '/spec/initContainers/0'
  test.each([
    ['command', ['sh']],
    ['args', ['run', '--file=/tmp/x']],
    ['workingDir', '/tmp'],
    ['env', [{ name: 'NODE_OPTIONS', value: '--require /tmp/x' }]],
    ['envFrom', [{ configMapRef: { name: 'x' } }]],
    ['ports', [{ name: 'http', containerPort: 15_080, hostPort: 80 }]],
    ['volumeMounts', []],
    ['securityContext', { privileged: true }],
    ['lifecycle', { postStart: { exec: { command: ['sh'] } } }],
    ['readinessProbe', { exec: { command: ['true'] } }],
    ['restartPolicy', null],
    ['restartPolicy', 'Never'],
    ['restartPolicyRules', []],
    ['volumeDevices', [{ name: 'x', devicePath: '/app' }]],
    ['stdin', true],
  ])('%s', (name, value) => {
    const pod = injected(podWith({}))
    const changed = applyPatch(pod, [{ op: 'add', path: `${SIDECAR}/${name}`, value }])
    const injection = judge(changed)
    expect(injection).toMatchObject({ verdict: 'inject', warnings: [expect.stringContaining(`changed ${name} of`)] })
    expect(injected(changed)).toEqual(pod)
  })

  test('what workload identities add to every container goes from the sidecar alone', () => {
    const pod = injected(podWith({ container: { env: [], volumeMounts: [] } }))
    const added = ['containers', 'initContainers'].flatMap((list) => [
      { op: 'add' as const, path: `/spec/${list}/0/env/-`, value: { name: 'AWS_ROLE_ARN', value: 'arn' } },
      { op: 'add' as const, path: `/spec/${list}/0/volumeMounts/-`, value: { name: 'aws', mountPath: '/var/run/aws' } },
    ])
    const { containers } = parsePod(injected(applyPatch(pod, added)))
    expect(containers[0]?.raw).toEqual(parsePod(pod).containers[0]?.raw)
    expect(containers[1]?.raw).toMatchObject({ env: [{ name: 'AWS_ROLE_ARN' }], volumeMounts: [{ name: 'aws' }] })
  })
})

describe('where a sidecar is required, nothing starts before it:', () => {
  const early = { name: 'early', image: 'x', restartPolicy: 'Always' }
  const names = (pod: JsonObject): readonly string[] =>
    parsePod(pod).containers.map(({ list, name }) => `${list}/${name}`)

  test('it stands before the init containers of the Pod, and in the order of its ports', () => {
    const container = {
      ports: [
        { name: 'http', containerPort: 8080 },
        { name: 'grpc', containerPort: 9090 },
      ],
    }
    const annotations = { ...ASKING, 'portcullis.dev/ports': 'grpc,http' }
    const pod = injected(podWith({ container, annotations, spec: { initContainers: [early] } }), 'required')
    expect(names(pod)).toEqual([
      'initContainers/portcullis-sidecar',
      'initContainers/portcullis-sidecar-2',
      'initContainers/early',
      'containers/app',
    ])
    expect(judge(pod, 'required')).toMatchObject({ operations: [] })
  })

  test('it goes back to the front when another webhook puts something there', () => {
    const pod = injected(podWith({}), 'required')
    const after = applyPatch(pod, [{ op: 'add', path: '/spec/initContainers/0', value: early }])
    expect(names(injected(after, 'required'))).toEqual([
      'initContainers/portcullis-sidecar',
      'initContainers/early',
      'containers/app',
    ])
    expect(judge(after)).toMatchObject({ operations: [] })
  })

  test('what admission adjusted in it goes with it', () => {
    const resources = { limits: { cpu: '1' } }
    const after = applyPatch(injected(podWith({}), 'required'), [
      { op: 'replace', path: '/spec/initContainers/0/resources', value: resources },
      { op: 'add', path: '/spec/initContainers/0', value: early },
    ])
    expect(parsePod(injected(after, 'required')).containers[0]?.raw).toMatchObject({ resources })
  })

  test('as an ordinary container it is the first, after init containers that end', () => {
    const spec = { initContainers: [{ name: 'migrate', image: 'x' }] }
    expect(names(injected(podWith({ spec }), 'required', ORDINARY))).toEqual([
      'initContainers/migrate',
      'containers/portcullis-sidecar',
      'containers/app',
    ])
  })

  test('as an ordinary container it cannot be before an init container that stays: sidecar_late', () => {
    const pod = podWith({ spec: { initContainers: [early] } })
    expect(judge(pod, 'required', ORDINARY)).toMatchObject({ verdict: 'deny', code: 'sidecar_late' })
    expect(judge(pod, 'enabled', ORDINARY)).toMatchObject({ verdict: 'inject' })
  })
})

test('ports that a Pod calls unprotected are marked by number, and no others', () => {
  const container = {
    ports: [{ name: 'http', containerPort: 8080 }, { name: 'metrics', containerPort: 9100 }, { containerPort: 9200 }],
  }
  const annotations = { ...ASKING, 'portcullis.dev/unprotected-ports': 'metrics, 9300, other' }
  const pod = injected(podWith({ container, annotations, labels: { app: 'invoices' } }))
  expect(Object.fromEntries(parsePod(pod).labels)).toEqual({
    app: 'invoices',
    'portcullis.dev/injected': '1',
    'portcullis.dev/open-9100': 'true',
    'portcullis.dev/open-9300': 'true',
  })
  expect(judge(pod)).toMatchObject({ operations: [] })
})
