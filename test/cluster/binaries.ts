/** The programs of a real control plane: found in KUBEBUILDER_ASSETS, the cache or the PATH, else built with Go into the cache. */
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { isObject } from '../../sidecar/injector/pod/json.ts'
import { buildGo } from '../support/programs/go-build.ts'
import { askJson, runs } from '../support/programs/run.ts'

const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.83.0'
const PROMETHEUS_CRDS = 'example/prometheus-operator-crd/monitoring.coreos.com'
const PROGRAMS = ['etcd', 'kube-apiserver', 'kubectl', 'helm'] as const
type Program = (typeof PROGRAMS)[number]
/** What makes Pods of a Deployment, gives each a node, and says that it runs. Without all of them that suite is skipped. */
const CONTROLLERS = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const
type Controller = (typeof CONTROLLERS)[number]
/** Definitions of the kinds of others that the chart can write, as published in their Go modules. */
const DEFINITIONS = {
  'certificates.yaml': ['github.com/cert-manager/cert-manager@v1.18.2', 'deploy/crds/crd-certificates.yaml'],
  'issuers.yaml': ['github.com/cert-manager/cert-manager@v1.18.2', 'deploy/crds/crd-issuers.yaml'],
  'servicemonitors.yaml': [PROMETHEUS_OPERATOR, `${PROMETHEUS_CRDS}_servicemonitors.yaml`],
  'prometheusrules.yaml': [PROMETHEUS_OPERATOR, `${PROMETHEUS_CRDS}_prometheusrules.yaml`],
  'httproutes.yaml': [
    'sigs.k8s.io/gateway-api@v1.3.0',
    'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml',
  ],
  'podmonitors.yaml': [PROMETHEUS_OPERATOR, `${PROMETHEUS_CRDS}_podmonitors.yaml`],
} as const
/** Of the gateways whose objects `gateway-config` prints: without them that suite is skipped. */
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.6.3'
const GATEWAY_API_CRDS = 'config/crd/experimental/gateway.networking.k8s.io'
const ENVOY_GATEWAY = 'github.com/envoyproxy/gateway@v1.9.1'
const ENVOY_GATEWAY_CRDS = 'charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io'
const GATEWAY_DEFINITIONS = {
  'httproutes.yaml': [GATEWAY_API, `${GATEWAY_API_CRDS}_httproutes.yaml`],
  'referencegrants.yaml': [GATEWAY_API, `${GATEWAY_API_CRDS}_referencegrants.yaml`],
  'backendtlspolicies.yaml': [GATEWAY_API, `${GATEWAY_API_CRDS}_backendtlspolicies.yaml`],
  'securitypolicies.yaml': [ENVOY_GATEWAY, `${ENVOY_GATEWAY_CRDS}_securitypolicies.yaml`],
  'clienttrafficpolicies.yaml': [ENVOY_GATEWAY, `${ENVOY_GATEWAY_CRDS}_clienttrafficpolicies.yaml`],
  'istio.yaml': ['istio.io/api@v1.31.1', 'kubernetes/customresourcedefinitions.gen.yaml'],
} as const
/** How kwok's nodes become ready, and how Pods leave them. */
const KWOK = { module: 'sigs.k8s.io/kwok', version: 'v0.8.0', path: 'cmd/kwok' } as const
const KWOK_STAGES = {
  'node-initialize.yaml': [`${KWOK.module}@${KWOK.version}`, 'kustomize/stage/node/fast/node-initialize.yaml'],
  'pod-delete.yaml': [`${KWOK.module}@${KWOK.version}`, 'kustomize/stage/pod/fast/pod-delete.yaml'],
} as const
export type Controllers = { readonly [name in Controller]: string } & { readonly stages: readonly string[] }
export type Binaries = { readonly [name in Program]: string } & {
  /** CustomResourceDefinitions, as YAML files. */
  readonly definitions: readonly string[]
  /** The same of gateways; those that cannot be had are left out. */
  readonly gatewayDefinitions: readonly string[]
  /** Null when one of them cannot be had. */
  readonly controllers: Controllers | null
}

const KUBERNETES = { version: 'v1.36.3', staging: 'v0.36.3', major: '1', minor: '36' } as const
const HELM_VERSION = 'v3.21.4'

/** Outside of the repository; XDG_CACHE_HOME moves it. */
export function cacheFolder(environment: NodeJS.ProcessEnv): string {
  return join(environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-cluster')
}

/** All programs, or the names of those that are missing and cannot be made here. */
export function findOrBuild(environment: NodeJS.ProcessEnv): Binaries | { readonly missing: readonly string[] } {
  const cache = cacheFolder(environment)
  const find = (name: Program | Controller): string | null => locate(name, environment, cache)
  // CI takes what was made before: building takes long.
  const optional = environment.CI === undefined ? CONTROLLERS : []
  for (const name of [...PROGRAMS, ...optional]) {
    if (find(name) !== null || !isInstalled(name === 'etcd' ? ['apt-get', '--version'] : ['go', 'version'])) continue
    console.log(`${name} is missing: making it in ${cache}, once`)
    if (name === 'etcd') unpackEtcd(cache)
    else if (name === 'kwok') buildGo(name, KWOK, cache)
    else build(name, cache)
  }
  const definitions = Object.keys(DEFINITIONS).map((name) => join(cache, 'definitions', name))
  fetchDefinitions(join(cache, 'definitions'), DEFINITIONS)
  fetchDefinitions(join(cache, 'gateway-definitions'), GATEWAY_DEFINITIONS)
  const missing = [
    ...PROGRAMS.filter((name) => find(name) === null),
    ...definitions.filter((path) => !existsSync(path)).map((path) => basename(path)),
  ]
  if (missing.length > 0) return { missing }
  const at = (name: Program): string => find(name) ?? ''
  return {
    definitions,
    gatewayDefinitions: Object.keys(GATEWAY_DEFINITIONS)
      .map((name) => join(cache, 'gateway-definitions', name))
      .filter((path) => existsSync(path)),
    controllers: findControllers(find, cache),
    etcd: at('etcd'),
    'kube-apiserver': at('kube-apiserver'),
    kubectl: at('kubectl'),
    helm: at('helm'),
  }
}

/** Says what is missing. */
function findControllers(find: (name: Controller) => string | null, cache: string): Controllers | null {
  const folder = join(cache, 'kwok-stages')
  fetchDefinitions(folder, KWOK_STAGES)
  const stages = Object.keys(KWOK_STAGES).map((name) => join(folder, name))
  const [manager, scheduler, kwok] = CONTROLLERS.map(find)
  if (manager && scheduler && kwok && stages.every((path) => existsSync(path)))
    return { 'kube-controller-manager': manager, 'kube-scheduler': scheduler, kwok, stages }
  const missing = [
    ...CONTROLLERS.filter((name) => find(name) === null),
    ...stages.filter((path) => !existsSync(path)).map((path) => basename(path)),
  ]
  console.log(`controllers.suite.ts is skipped: ${missing.join(', ')} missing; install Go and run npm run test:cluster`)
  return null
}

function locate(name: Program | Controller, environment: NodeJS.ProcessEnv, cache: string): string | null {
  const { KUBEBUILDER_ASSETS: assets, PATH: path = '' } = environment
  const folders = [...(assets === undefined ? [] : [assets]), join(cache, 'bin'), ...path.split(delimiter)]
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null
}

function isInstalled([program, word]: readonly [string, string]): boolean {
  return spawnSync(program, [word], { stdio: 'ignore' }).status === 0
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Debian's package, unpacked beside the system rather than installed into it. */
function unpackEtcd(cache: string): void {
  const folder = join(cache, 'etcd-package')
  mkdirSync(folder, { recursive: true })
  mkdirSync(join(cache, 'bin'), { recursive: true })
  // As root, apt would complain that its own user cannot write here.
  if (!runs('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', 'etcd-server'], folder)) return
  const file = readdirSync(folder).find((name) => name.endsWith('.deb'))
  if (file === undefined || !runs('dpkg-deb', ['--extract', file, 'content'], folder)) return
  renameSync(join(folder, 'content', 'usr', 'bin', 'etcd'), join(cache, 'bin', 'etcd'))
  rmSync(folder, { recursive: true })
}

type Target = Exclude<Program | Controller, 'etcd' | 'kwok'>
const KUBERNETES_SET = [
  `k8s.io/component-base/version.gitVersion=${KUBERNETES.version}`,
  `k8s.io/component-base/version.gitMajor=${KUBERNETES.major}`,
  `k8s.io/component-base/version.gitMinor=${KUBERNETES.minor}`,
]
const TARGETS: { readonly [name in Target]: { readonly path: string; readonly set: readonly string[] } } = {
  'kube-apiserver': { path: 'k8s.io/kubernetes/cmd/kube-apiserver', set: KUBERNETES_SET },
  'kube-controller-manager': { path: 'k8s.io/kubernetes/cmd/kube-controller-manager', set: KUBERNETES_SET },
  'kube-scheduler': { path: 'k8s.io/kubernetes/cmd/kube-scheduler', set: KUBERNETES_SET },
  kubectl: { path: 'k8s.io/kubernetes/cmd/kubectl', set: [] },
  helm: {
    path: 'helm.sh/helm/v3/cmd/helm',
    set: ['chartutil', 'lint/rules'].flatMap((part) => [
      `helm.sh/helm/v3/pkg/${part}.k8sVersionMajor=${KUBERNETES.major}`,
      `helm.sh/helm/v3/pkg/${part}.k8sVersionMinor=${KUBERNETES.minor}`,
    ]),
  },
}

/** One module for all, so that what they share is compiled once; at low priority, since it takes minutes. */
function build(name: Target, cache: string): void {
  const folder = join(cache, 'build')
  mkdirSync(folder, { recursive: true })
  mkdirSync(join(cache, 'bin'), { recursive: true })
  const replaces = stagingModules(folder)
  if (replaces === null) return
  const lines = [
    'module portcullis.dev/cluster-binaries',
    'go 1.26.0',
    `require k8s.io/kubernetes ${KUBERNETES.version}`,
    `require helm.sh/helm/v3 ${HELM_VERSION}`,
    ...replaces.map((module) => `replace ${module} => ${module} ${KUBERNETES.staging}`),
  ]
  writeFileSync(join(folder, 'go.mod'), `${lines.join('\n')}\n`)
  const { path, set } = TARGETS[name]
  const flags = ['-s', '-w', ...set.flatMap((value) => ['-X', value])].join(' ')
  const made = join(folder, name)
  const words = ['-n', '19', 'go', 'build', '-mod=mod', '-p', '1', '-trimpath', '-ldflags', flags, '-o', made, path]
  if (runs('nice', words, folder)) renameSync(made, join(cache, 'bin', name))
}

/** Kubernetes replaces its own modules by folders that only its repository has; their published twins stand in. */
function stagingModules(folder: string): readonly string[] | null {
  const downloaded = askJson('go', ['mod', 'download', '-json', `k8s.io/kubernetes@${KUBERNETES.version}`], folder)
  if (!isObject(downloaded) || typeof downloaded.GoMod !== 'string') return null
  const file = askJson('go', ['mod', 'edit', '-json', downloaded.GoMod], folder)
  if (!isObject(file) || !Array.isArray(file.Replace)) return null
  return file.Replace.flatMap((entry: unknown) => {
    const [from, to] = isObject(entry) ? [entry.Old, entry.New] : []
    if (!isObject(from) || !isObject(to) || !String(to.Path).startsWith('./staging/')) return []
    return [String(from.Path)]
  })
}

function fetchDefinitions(
  folder: string,
  definitions: { readonly [name: string]: readonly [module: string, path: string] },
): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, [module, path]] of Object.entries(definitions)) {
    if (existsSync(join(folder, name))) continue
    const downloaded = askJson('go', ['mod', 'download', '-json', module], folder)
    if (isObject(downloaded) && typeof downloaded.Dir === 'string')
      copyFileSync(join(downloaded.Dir, path), join(folder, name))
  }
}
