/** Shares resources between configurations: a resource is opened once per key, and closed when its last lease is released. */

export type Lease<T> = { readonly value: T; release(): void }
export type Leases<T> = {
  /** Calls `open` only when no lease with this key is held. */
  lease(key: string, open: () => { readonly value: T; readonly close: () => void }): Lease<T>
}

export function createLeases<T>(): Leases<T> {
  const held = new Map<string, { readonly value: T; readonly close: () => void; users: number }>()
  return {
    lease(key, open) {
      const resource = held.get(key) ?? { ...open(), users: 0 }
      held.set(key, resource)
      resource.users += 1
      let released = false
      return {
        value: resource.value,
        release() {
          if (released) return
          released = true
          resource.users -= 1
          if (resource.users > 0) return
          held.delete(key)
          resource.close()
        },
      }
    },
  }
}
