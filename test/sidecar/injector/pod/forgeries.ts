/** What the author of a Pod may change in one that the injector made, so that its gate guards nothing or something else. */
import type { Json } from '../../../../sidecar/injector/pod/json.ts'
import type { PatchOperation } from '../../../../sidecar/injector/pod/patch.ts'

const GATE = '/spec/initContainers/0'
const APP = '/spec/containers/0'
const add = (path: string, value: Json): PatchOperation => ({ op: 'add', path, value })
const put = (path: string, value: Json): PatchOperation => ({ op: 'replace', path, value })
const remove = (path: string): PatchOperation => ({ op: 'remove', path })
const FLAG = '--max-http-header-size=16384'
const early = { name: 'early', image: 'x', restartPolicy: 'Always' }

export const FORGERIES: readonly (readonly [string, readonly PatchOperation[]])[] = [
  ['an app port first in a Service, in the place of the admin port', [put(`${GATE}/ports/1/containerPort`, 8080)]],
  ['the gated name on the admin port', [put(`${GATE}/ports/0/name`, 'x'), put(`${GATE}/ports/1/name`, 'http')]],
  ['ports in another order', [add(`${GATE}/ports/0`, { name: 'x', containerPort: 8080, protocol: 'TCP' })]],
  ['a data port over UDP', [put(`${GATE}/ports/0/protocol`, 'UDP')]],
  ['another data port', [put(`${GATE}/ports/0/containerPort`, 15_081)]],
  ['the data port on the node', [add(`${GATE}/ports/0/hostPort`, 80)]],
  ['the admin port on the node', [add(`${GATE}/ports/1/hostPort`, 15_090)]],
  ['an address of the node', [add(`${GATE}/ports/0/hostIP`, '127.0.0.1')]],
  ['no ports', [remove(`${GATE}/ports`)]],
  [
    'words of the command joined, with a folder to run in',
    [
      put(`${GATE}/command`, ['node', `${FLAG} /app/sidecar/bin.js`]),
      add(`${GATE}/workingDir`, '/etc/portcullis/routes'),
    ],
  ],
  ['a flag more in the command', [add(`${GATE}/command/1`, FLAG)]],
  ['the whole command in one word', [put(`${GATE}/command`, ['node --max-semi-space-size=4 /app/sidecar/bin.js'])]],
  ['no command', [remove(`${GATE}/command`)]],
  ['a folder to run in', [add(`${GATE}/workingDir`, '/tmp')]],
  ['one argument more', [add(`${GATE}/args/-`, '--listen=127.0.0.1:15080')]],
  ['one argument fewer', [remove(`${GATE}/args/3`)]],
  ['arguments joined', [put(`${GATE}/args`, ['run --file=/etc/portcullis/routes/http.yaml', '--listen=:15080'])]],
  ['an ordinary init container', [remove(`${GATE}/restartPolicy`)]],
  ['an init container that starts once', [put(`${GATE}/restartPolicy`, 'Never')]],
  ['an init container that starts after failures', [put(`${GATE}/restartPolicy`, 'OnFailure')]],
  [
    'rules that end it',
    [add(`${GATE}/restartPolicyRules`, [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }])],
  ],
  ['another tag', [put(`${GATE}/image`, 'portcullis-sidecar:0.0.1')]],
  ['no tag', [put(`${GATE}/image`, 'portcullis-sidecar')]],
  ['a digest', [put(`${GATE}/image`, `portcullis-sidecar@sha256:${'a'.repeat(64)}`)]],
  ['a tag and a digest', [put(`${GATE}/image`, `portcullis-sidecar:0.1.0@sha256:${'a'.repeat(64)}`)]],
  ['a variable twice', [add(`${GATE}/env/-`, { name: 'PORTCULLIS_LOG_LEVEL', value: 'silent' })]],
  [
    'a variable from a ConfigMap',
    [put(`${GATE}/env/0`, { name: 'PORTCULLIS_LOG_LEVEL', valueFrom: { configMapKeyRef: { name: 'x', key: 'y' } } })],
  ],
  ['variables of a ConfigMap', [add(`${GATE}/envFrom`, [{ configMapRef: { name: 'x' } }])]],
  ['no variables', [remove(`${GATE}/env`)]],
  [
    'a mount over the program',
    [
      add(`${GATE}/volumeMounts/-`, { name: 'data', mountPath: '/app' }),
      add('/spec/volumes/-', { name: 'data', emptyDir: {} }),
    ],
  ],
  ['a part of the routes', [add(`${GATE}/volumeMounts/0/subPath`, 'x')]],
  ['routes that may be written', [put(`${GATE}/volumeMounts/0/readOnly`, false)]],
  ['mounts that travel', [add(`${GATE}/volumeMounts/0/mountPropagation`, 'HostToContainer')]],
  ['no token for the PDP', [remove(`${GATE}/volumeMounts/1`)]],
  ['a hook at its start', [add(`${GATE}/lifecycle/postStart`, { exec: { command: ['node', '-e', '0'] } })]],
  ['another hook at its end', [put(`${GATE}/lifecycle/preStop`, { httpGet: { path: '/', port: 8080 } })]],
  [
    'words of the hook joined',
    [put(`${GATE}/lifecycle/preStop/exec/command`, ['node', '/app/sidecar/bin.js withdraw --seconds=5'])],
  ],
  ['no hook', [remove(`${GATE}/lifecycle`)]],
  ['a probe that runs a program', [put(`${GATE}/livenessProbe`, { exec: { command: ['node', '-e', '0'] } })]],
  ['a probe of another port', [put(`${GATE}/readinessProbe/httpGet/port`, 8080)]],
  ['a probe of another host', [add(`${GATE}/readinessProbe/httpGet/host`, '10.0.0.1')]],
  ['a probe that waits for ever', [put(`${GATE}/startupProbe/failureThreshold`, 100_000)]],
  ['no probe', [remove(`${GATE}/readinessProbe`)]],
  ['the user root', [put(`${GATE}/securityContext/runAsUser`, 0), put(`${GATE}/securityContext/runAsNonRoot`, false)]],
  ['a capability', [add(`${GATE}/securityContext/capabilities/add`, ['NET_ADMIN'])]],
  ['files of the image that may be written', [put(`${GATE}/securityContext/readOnlyRootFilesystem`, false)]],
  ['no security context', [remove(`${GATE}/securityContext`)]],
  ['a terminal', [add(`${GATE}/stdin`, true), add(`${GATE}/tty`, true)]],
  ['its last message elsewhere', [put(`${GATE}/terminationMessagePath`, '/etc/portcullis/routes/http.yaml')]],
  ['a container before it', [add('/spec/initContainers/0', early)]],
  [
    'a container before it that takes its port',
    [add('/spec/initContainers/0', { ...early, ports: [{ containerPort: 15_080 }] })],
  ],
  [
    'a container beside it that takes its port',
    [add('/spec/containers/-', { name: 'b', image: 'x', ports: [{ containerPort: 15_080 }] })],
  ],
  [
    'a container beside it that takes its admin port',
    [add('/spec/containers/-', { name: 'b', image: 'x', ports: [{ containerPort: 15_090 }] })],
  ],
  ['a second gate', [add('/spec/initContainers/-', { name: 'portcullis-gate-2', image: 'portcullis-sidecar:0.1.0' })]],
  ['a helper with a name like ours', [add('/spec/containers/-', { name: 'portcullis-helper', image: 'x' })]],
  [
    'the port behind it under a second name',
    [add(`${APP}/ports/-`, { name: 'metrics', containerPort: 8080, protocol: 'UDP' })],
  ],
  [
    'a second port with the name behind it',
    [add('/spec/containers/-', { name: 'b', image: 'x', ports: [{ name: 'app-http', containerPort: 9999 }] })],
  ],
  ['the port behind it over UDP', [add(`${APP}/ports/0/protocol`, 'UDP')]],
  ['the port behind it on the node', [add(`${APP}/ports/0/hostPort`, 8080)]],
  ['the gated name for the app again', [put(`${APP}/ports/0/name`, 'http')]],
  ['a port that nobody named', [add(`${APP}/ports/-`, { containerPort: 9100 })]],
  ['the network of the node', [add('/spec/hostNetwork', true)]],
  ['shared processes', [add('/spec/shareProcessNamespace', true)]],
  ['the processes of the node', [add('/spec/hostPID', true)]],
  ['service links', [put('/spec/enableServiceLinks', true)]],
  ['a mount of its sockets', [add(`${APP}/volumeMounts`, [{ name: 'portcullis-control', mountPath: '/x' }])]],
  ['routes from a folder of its own', [put('/spec/volumes/0', { name: 'portcullis-routes', emptyDir: {} })]],
  ['routes of a ConfigMap that may be absent', [add('/spec/volumes/0/configMap/optional', true)]],
  [
    'one file of the routes for another',
    [add('/spec/volumes/0/configMap/items', [{ key: 'open', path: 'http.yaml' }])],
  ],
  ['a second source of the token', [add('/spec/volumes/1/projected/sources/-', { configMap: { name: 'x' } })]],
  ['sockets in memory', [add('/spec/volumes/2/emptyDir/medium', 'Memory')]],
  ['a volume with a name like ours', [add('/spec/volumes/-', { name: 'portcullis-x', emptyDir: {} })]],
  ['more gates on its label', [put('/metadata/labels/portcullis.dev~1injected', '2')]],
  ['no label', [remove('/metadata/labels/portcullis.dev~1injected')]],
  ['the port behind it marked as open', [add('/metadata/labels/portcullis.dev~1open-8080', 'true')]],
  ['a port marked as open without a word', [add('/metadata/labels/portcullis.dev~1open-9100', 'true')]],
  ['the port behind it called unprotected', [add('/metadata/annotations/portcullis.dev~1unprotected-ports', '8080')]],
  [
    'the name behind it called unprotected',
    [add('/metadata/annotations/portcullis.dev~1unprotected-ports', 'app-http')],
  ],
  ['the port of a gate called unprotected', [add('/metadata/annotations/portcullis.dev~1unprotected-ports', '15081')]],
  [
    'the port behind it called unprotected and marked as open',
    [
      add('/metadata/annotations/portcullis.dev~1unprotected-ports', '8080'),
      add('/metadata/labels/portcullis.dev~1open-8080', 'true'),
    ],
  ],
  ['a gate that is not asked for', [put('/metadata/annotations/portcullis.dev~1ports', 'none')]],
  ['a way out', [add('/metadata/labels/portcullis.dev~1inject', 'disabled')]],
  ['a label of ours that there is not', [add('/metadata/labels/portcullis.dev~1gated', 'true')]],
]
/** Changes that are nothing of ours. */
export const HARMLESS: readonly (readonly [string, readonly PatchOperation[]])[] = [
  ['more memory for the gate', [put(`${GATE}/resources`, { limits: { memory: '512Mi' } })]],
  ['images that are always pulled', [put(`${GATE}/imagePullPolicy`, 'Always')]],
  ['names of hosts', [add('/spec/hostAliases', [{ ip: '10.0.0.1', hostnames: ['x'] }])]],
  ['a container beside it', [add('/spec/containers/-', { name: 'b', image: 'x' })]],
  ['an init container after it', [add('/spec/initContainers/-', { name: 'migrate', image: 'x' })]],
  ['a sidecar after it', [add('/spec/initContainers/-', early)]],
  ['labels of its own', [add('/metadata/labels/app', 'invoices')]],
]
