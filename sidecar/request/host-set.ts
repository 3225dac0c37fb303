/** Which hosts are served: names, and names with `*` in place of their first label. */

/** `*.app.example.com` matches exactly one more label, as in certificates: neither `app.example.com` nor `a.b.app.example.com`. */
export function createHostSet(names: Iterable<string>) {
  const all = new Set(names)
  return {
    /** The names as the route file writes them. */
    names: [...all],
    /** Takes a host name in lower case, without port. */
    has: (host: string): boolean => !host.startsWith('*') && (all.has(host) || all.has(host.replace(/^[^.]+/, '*'))),
  }
}

/** The names of a Kubernetes Service and of its StatefulSet's Pods within the cluster. `domain`: the cluster's domain. */
export function clusterNames(service: string, namespace: string, domain: string): readonly string[] {
  const names = ['', `.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.${domain}`].map(
    (end) => `${service}${end}`,
  )
  const absolute = `${service}.${namespace}.svc.${domain}.`
  return [...names, absolute].flatMap((name) => [name, `*.${name}`])
}
