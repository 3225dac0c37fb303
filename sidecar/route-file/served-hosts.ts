/** The hosts that a route file serves. */
import type { RouteFile } from './route-file.ts'

/** The hosts of `hosts`, or of `resource` and `public_url`, and those that routes name. */
export const servedHosts = ({ hosts, routes }: Pick<RouteFile, 'hosts' | 'routes'>): readonly string[] => [
  ...new Set([...hosts, ...routes.map(({ host }) => host).filter((host) => host !== null)]),
]
