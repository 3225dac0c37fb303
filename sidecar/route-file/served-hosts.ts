/** The hosts that a route file serves, and what an operator does about a request for another host. */
import type { RouteFile } from './route-file.ts'

/** The hosts of `hosts`, or of `resource` and `public_url`, and those that routes name. */
export const servedHosts = ({ hosts, routes }: Pick<RouteFile, 'hosts' | 'routes'>): readonly string[] => [
  ...new Set([...hosts, ...routes.map(({ host }) => host).filter((host) => host !== null)]),
]

/** For the log and the command line only: a client does not learn which hosts are served. */
export function unknownHostReason(host: string, served: Iterable<string>): string {
  const hosts = [...served]
  const more = hosts.length > HOSTS_NAMED_MAX ? ` and ${hosts.length - HOSTS_NAMED_MAX} more` : ''
  const named = `${hosts.slice(0, HOSTS_NAMED_MAX).join(', ')}${more}`
  return `the host ${host} is not served; served hosts: ${named}; to serve it, add it to hosts in the route file`
}

/** Bounds a log line that any client can cause. */
const HOSTS_NAMED_MAX = 10
