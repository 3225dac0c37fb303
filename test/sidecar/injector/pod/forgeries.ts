/** What the author of a Pod may change in one that the injector made, so that its sidecar guards nothing or something else. */
import type { Json } from '../../../../sidecar/injector/pod/json.ts'
import type { PatchOperation } from '../../../../sidecar/injector/pod/patch.ts'

const SIDECAR = '/spec/initContainers/0'
const APP = '/spec/containers/0'
const add = (path: string, value: Json): PatchOperation => ({ op: 'add', path, value })
const put = (path: string, value: Json): PatchOperation => ({ op: 'replace', path, value })
const remove = (path: string): PatchOperation => ({ op: 'remove', path })
const FLAG = '--max-http-header-size=16384'
const early = { name: 'early', image: 'x', restartPolicy: 'Always' }

const tokenFor = (audience: string, ...before: readonly Json[]): Json => ({
  name: 'own-token',
  projected: { sources: [...before, { serviceAccountToken: { path: 'token', audience, expirationSeconds: 3600 } }] },
})

export const FORGERIES: readonly (readonly [string, readonly PatchOperation[]])[] = [
  ['an app port first in a Service, in the place of the admin port', [put(`${SIDECAR}/ports/1/containerPort`, 8080)]],
  [
    'the protected name on the admin port',
    [put(`${SIDECAR}/ports/0/name`, 'x'), put(`${SIDECAR}/ports/1/name`, 'http')],
  ],
  ['ports in another order', [add(`${SIDECAR}/ports/0`, { name: 'x', containerPort: 8080, protocol: 'TCP' })]],
  ['a data port over UDP', [put(`${SIDECAR}/ports/0/protocol`, 'UDP')]],
  ['another data port', [put(`${SIDECAR}/ports/0/containerPort`, 15_081)]],
  ['the data port on the node', [add(`${SIDECAR}/ports/0/hostPort`, 80)]],
  ['the admin port on the node', [add(`${SIDECAR}/ports/1/hostPort`, 15_094)]],
  ['an address of the node', [add(`${SIDECAR}/ports/0/hostIP`, '127.0.0.1')]],
  ['no ports', [remove(`${SIDECAR}/ports`)]],
  [
    'words of the command joined, with a folder to run in',
    [
      put(`${SIDECAR}/command`, ['node', `${FLAG} /app/sidecar/bin.js`]),
      add(`${SIDECAR}/workingDir`, '/etc/portcullis/routes'),
    ],
  ],
  ['a flag more in the command', [add(`${SIDECAR}/command/1`, FLAG)]],
  ['the whole command in one word', [put(`${SIDECAR}/command`, ['node --max-semi-space-size=8 /app/sidecar/bin.js'])]],
  ['no command', [remove(`${SIDECAR}/command`)]],
  ['a folder to run in', [add(`${SIDECAR}/workingDir`, '/tmp')]],
  ['one argument more', [add(`${SIDECAR}/args/-`, '--listen=127.0.0.1:15080')]],
  [
    'issuers of its own',
    [
      add(
        `${SIDECAR}/args/-`,
        '--platform={"issuers":[{"issuer":"https://evil.example.com"}],"pdp":{"address":"e:1"}}',
      ),
    ],
  ],
  ['one argument fewer', [remove(`${SIDECAR}/args/3`)]],
  ['arguments joined', [put(`${SIDECAR}/args`, ['run --file=/etc/portcullis/routes/http.yaml', '--listen=:15080'])]],
  ['an ordinary init container', [remove(`${SIDECAR}/restartPolicy`)]],
  ['an init container that starts once', [put(`${SIDECAR}/restartPolicy`, 'Never')]],
  ['an init container that starts after failures', [put(`${SIDECAR}/restartPolicy`, 'OnFailure')]],
  [
    'rules that end it',
    [add(`${SIDECAR}/restartPolicyRules`, [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }])],
  ],
  ['another tag', [put(`${SIDECAR}/image`, 'portcullis-sidecar:0.0.1')]],
  ['no tag', [put(`${SIDECAR}/image`, 'portcullis-sidecar')]],
  ['a digest', [put(`${SIDECAR}/image`, `portcullis-sidecar@sha256:${'a'.repeat(64)}`)]],
  ['a tag and a digest', [put(`${SIDECAR}/image`, `portcullis-sidecar:0.1.0@sha256:${'a'.repeat(64)}`)]],
  ['a variable twice', [add(`${SIDECAR}/env/-`, { name: 'PORTCULLIS_LOG_LEVEL', value: 'silent' })]],
  [
    'a variable from a ConfigMap',
    [
      put(`${SIDECAR}/env/0`, {
        name: 'PORTCULLIS_LOG_LEVEL',
        valueFrom: { configMapKeyRef: { name: 'x', key: 'y' } },
      }),
    ],
  ],
  ['variables of a ConfigMap', [add(`${SIDECAR}/envFrom`, [{ configMapRef: { name: 'x' } }])]],
  ['no variables', [remove(`${SIDECAR}/env`)]],
  [
    'a mount over the program',
    [
      add(`${SIDECAR}/volumeMounts/-`, { name: 'data', mountPath: '/app' }),
      add('/spec/volumes/-', { name: 'data', emptyDir: {} }),
    ],
  ],
  ['a part of the routes', [add(`${SIDECAR}/volumeMounts/0/subPath`, 'x')]],
  ['routes that may be written', [put(`${SIDECAR}/volumeMounts/0/readOnly`, false)]],
  ['mounts that travel', [add(`${SIDECAR}/volumeMounts/0/mountPropagation`, 'HostToContainer')]],
  ['no token for the PDP', [remove(`${SIDECAR}/volumeMounts/1`)]],
  ['a hook at its start', [add(`${SIDECAR}/lifecycle/postStart`, { exec: { command: ['node', '-e', '0'] } })]],
  ['another hook at its end', [put(`${SIDECAR}/lifecycle/preStop`, { httpGet: { path: '/', port: 8080 } })]],
  [
    'words of the hook joined',
    [put(`${SIDECAR}/lifecycle/preStop/exec/command`, ['node', '/app/sidecar/bin.js withdraw --seconds=5'])],
  ],
  ['no hook', [remove(`${SIDECAR}/lifecycle`)]],
  ['a probe that runs a program', [put(`${SIDECAR}/livenessProbe`, { exec: { command: ['node', '-e', '0'] } })]],
  ['a probe of another port', [put(`${SIDECAR}/readinessProbe/httpGet/port`, 8080)]],
  ['a probe of another host', [add(`${SIDECAR}/readinessProbe/httpGet/host`, '10.0.0.1')]],
  ['a probe that waits for ever', [put(`${SIDECAR}/startupProbe/failureThreshold`, 100_000)]],
  ['no probe', [remove(`${SIDECAR}/readinessProbe`)]],
  [
    'the user root',
    [put(`${SIDECAR}/securityContext/runAsUser`, 0), put(`${SIDECAR}/securityContext/runAsNonRoot`, false)],
  ],
  ['a capability', [add(`${SIDECAR}/securityContext/capabilities/add`, ['NET_ADMIN'])]],
  ['files of the image that may be written', [put(`${SIDECAR}/securityContext/readOnlyRootFilesystem`, false)]],
  ['no security context', [remove(`${SIDECAR}/securityContext`)]],
  ['a terminal', [add(`${SIDECAR}/stdin`, true), add(`${SIDECAR}/tty`, true)]],
  ['its last message elsewhere', [put(`${SIDECAR}/terminationMessagePath`, '/etc/portcullis/routes/http.yaml')]],
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
    [add('/spec/containers/-', { name: 'b', image: 'x', ports: [{ containerPort: 15_094 }] })],
  ],
  [
    'a second sidecar',
    [add('/spec/initContainers/-', { name: 'portcullis-sidecar-2', image: 'portcullis-sidecar:0.1.0' })],
  ],
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
  ['the protected name for the app again', [put(`${APP}/ports/0/name`, 'http')]],
  ['a port that nobody named', [add(`${APP}/ports/-`, { containerPort: 9100 })]],
  ['the network of the node', [add('/spec/hostNetwork', true)]],
  ['shared processes', [add('/spec/shareProcessNamespace', true)]],
  ['the processes of the node', [add('/spec/hostPID', true)]],
  ['a mount of its sockets', [add(`${APP}/volumeMounts`, [{ name: 'portcullis-control', mountPath: '/x' }])]],
  ['routes from a folder of its own', [put('/spec/volumes/0', { name: 'portcullis-routes', emptyDir: {} })]],
  ['routes of a ConfigMap that may be absent', [add('/spec/volumes/0/configMap/optional', true)]],
  [
    'one file of the routes for another',
    [add('/spec/volumes/0/configMap/items', [{ key: 'open', path: 'http.yaml' }])],
  ],
  ['a second source of the token', [add('/spec/volumes/1/projected/sources/-', { configMap: { name: 'x' } })]],
  ['a token of its own that asks the PDP', [add('/spec/volumes/-', tokenFor('portcullis-pdp'))]],
  [
    'a token of its own that asks the PDP, behind another source',
    [add('/spec/volumes/-', tokenFor('portcullis-pdp', { configMap: { name: 'x' } }))],
  ],
  ['sockets on the disk of the node', [remove('/spec/volumes/2/emptyDir/medium')]],
  ['a volume with a name like ours', [add('/spec/volumes/-', { name: 'portcullis-x', emptyDir: {} })]],
  ['more sidecars on its label', [put('/metadata/labels/portcullis.dev~1injected', '2')]],
  ['no label', [remove('/metadata/labels/portcullis.dev~1injected')]],
  ['the port behind it marked as open', [add('/metadata/labels/portcullis.dev~1open-8080', 'true')]],
  ['a port marked as open without a word', [add('/metadata/labels/portcullis.dev~1open-9100', 'true')]],
  ['the port behind it called unprotected', [add('/metadata/annotations/portcullis.dev~1unprotected-ports', '8080')]],
  [
    'the name behind it called unprotected',
    [add('/metadata/annotations/portcullis.dev~1unprotected-ports', 'app-http')],
  ],
  [
    'the port of a sidecar called unprotected',
    [add('/metadata/annotations/portcullis.dev~1unprotected-ports', '15081')],
  ],
  [
    'the port behind it called unprotected and marked as open',
    [
      add('/metadata/annotations/portcullis.dev~1unprotected-ports', '8080'),
      add('/metadata/labels/portcullis.dev~1open-8080', 'true'),
    ],
  ],
  ['a sidecar that is not asked for', [put('/metadata/annotations/portcullis.dev~1ports', 'none')]],
  ['a way out', [add('/metadata/labels/portcullis.dev~1inject', 'disabled')]],
  ['a label of ours that there is not', [add('/metadata/labels/portcullis.dev~1protected', 'true')]],
]
/** Changes that are nothing of ours. */
export const HARMLESS: readonly (readonly [string, readonly PatchOperation[]])[] = [
  ['more memory for the sidecar', [put(`${SIDECAR}/resources`, { limits: { memory: '512Mi' } })]],
  ['images that are always pulled', [put(`${SIDECAR}/imagePullPolicy`, 'Always')]],
  ['a token for somebody else', [add('/spec/volumes/-', tokenFor('vault'))]],
  ['names of hosts', [add('/spec/hostAliases', [{ ip: '10.0.0.1', hostnames: ['x'] }])]],
  ['a container beside it', [add('/spec/containers/-', { name: 'b', image: 'x' })]],
  ['an init container after it', [add('/spec/initContainers/-', { name: 'migrate', image: 'x' })]],
  ['a sidecar after it', [add('/spec/initContainers/-', early)]],
  ['labels of its own', [add('/metadata/labels/app', 'invoices')]],
]
