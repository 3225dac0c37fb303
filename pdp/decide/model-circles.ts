/** Which nodes of a graph lie on a circle with each other, in time that grows with the graph alone. */

/** By node, the number of its circle: two have the same one if and only if each reaches the other. Tarjan, 1972. */
export function circlesOf(edges: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, number> {
  const circles = new Map<string, number>()
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  for (const root of edges.keys()) if (!order.has(root)) walk(root)
  return circles

  function enter(node: string): { node: string; next: Iterator<string> } {
    order.set(node, order.size)
    lowest.set(node, order.get(node) ?? 0)
    open.push(node)
    return { node, next: (edges.get(node) ?? []).values() }
  }

  /** Without recursion, which a long chain would take too deep. */
  function walk(root: string): void {
    const path = [enter(root)]
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const { done, value: to } = at.next.next()
      if (done === true) {
        path.pop()
        close(at.node)
        const above = path.at(-1)
        if (above !== undefined) lower(above.node, lowest.get(at.node))
      } else if (!order.has(to)) path.push(enter(to))
      else if (!circles.has(to)) lower(at.node, order.get(to))
    }
  }

  function lower(node: string, to: number | undefined): void {
    lowest.set(node, Math.min(lowest.get(node) ?? 0, to ?? Number.POSITIVE_INFINITY))
  }

  function close(node: string): void {
    const number = order.get(node)
    if (number === undefined || lowest.get(node) !== number) return
    for (let member = open.pop(); member !== undefined; member = open.pop()) {
      circles.set(member, number)
      if (member === node) return
    }
  }
}
