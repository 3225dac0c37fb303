/** Networks whose members a gateway believes. */

/** A network of so many addresses that it holds clients: two halves are as good as the whole. */
export function isEverybody(network: string): boolean {
  const [, address = '', length] = /^(.+)\/(\d+)$/.exec(network) ?? []
  return length !== undefined && Number(length) < (address.includes(':') ? 7 : 8)
}
