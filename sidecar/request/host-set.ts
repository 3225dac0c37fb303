/** Which hosts are served: names, and names with `*` in place of their first label. */

/** Takes host names in lower case, without port. */
export type HostSet = {
  has(host: string): boolean
  /** As the file writes them. */
  readonly names: readonly string[]
}

/** `*.app.example.com` means one label, as in certificates: neither for `app.example.com` nor for `a.b.app.example.com`. */
export function createHostSet(names: Iterable<string>): HostSet {
  const all = new Set(names)
  return {
    names: [...all],
    has: (host) => !host.startsWith('*') && (all.has(host) || all.has(host.replace(/^[^.]+/, '*'))),
  }
}

/** Every name of a Service of Kubernetes within its cluster, and those of the Pods of a StatefulSet. `domain`: that of the cluster. */
export function clusterNames(service: string, namespace: string, domain: string): readonly string[] {
  const names = ['', `.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.${domain}`].map(
    (end) => `${service}${end}`,
  )
  const absolute = `${service}.${namespace}.svc.${domain}.`
  return [...names, absolute].flatMap((name) => [name, `*.${name}`])
}
