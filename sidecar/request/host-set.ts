/** Which hosts are served: names, and names with `*` in place of their first label. */

/** `*.app.example.com` matches exactly one more label, as in certificates: neither `app.example.com` nor `a.b.app.example.com`. */
export function createHostSet(names: Iterable<string>) {
  const all = new Set(names)
  return {
    /** The names as the file writes them. */
    names: [...all],
    /** Takes a host name in lower case, without port. */
    has: (host: string): boolean => !host.startsWith('*') && (all.has(host) || all.has(host.replace(/^[^.]+/, '*'))),
  }
}

/** Every name of a Kubernetes Service within its cluster, and those of the Pods of a StatefulSet. `domain`: the cluster's domain. */
export function clusterNames(service: string, namespace: string, domain: string): readonly string[] {
  const names = ['', `.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.${domain}`].map(
    (end) => `${service}${end}`,
  )
  const absolute = `${service}.${namespace}.svc.${domain}.`
  return [...names, absolute].flatMap((name) => [name, `*.${name}`])
}
