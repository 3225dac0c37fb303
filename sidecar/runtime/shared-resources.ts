/** Shares resources between configurations: each is opened once per key, and closed by the release of its last user. */

export type Shared<T> = { readonly value: T; release(): void }

export function createSharedResources<T>() {
  const inUse = new Map<string, { readonly value: T; readonly close: () => void; users: number }>()
  return {
    /** Opens a resource, unless it is already in use under this key. */
    use(key: string, open: () => { readonly value: T; readonly close: () => void }): Shared<T> {
      const resource = inUse.get(key) ?? { ...open(), users: 0 }
      inUse.set(key, resource)
      resource.users += 1
      let released = false
      return {
        value: resource.value,
        release() {
          if (released) return
          released = true
          resource.users -= 1
          if (resource.users > 0) return
          inUse.delete(key)
          resource.close()
        },
      }
    },
  }
}
