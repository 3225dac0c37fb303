/** Keeps what outlives a change of the configuration: a part is shared by all who name it alike, and closed after the last. */

export type Lease<T> = { readonly value: T; release(): void }
export type Leases<T> = {
  /** `open` is called only when nobody holds a part of this key. */
  lease(key: string, open: () => { readonly value: T; readonly close: () => void }): Lease<T>
}

export function createLeases<T>(): Leases<T> {
  const held = new Map<string, { readonly value: T; readonly close: () => void; users: number }>()
  return {
    lease(key, open) {
      const part = held.get(key) ?? { ...open(), users: 0 }
      held.set(key, part)
      part.users += 1
      let released = false
      return {
        value: part.value,
        release() {
          if (released) return
          released = true
          part.users -= 1
          if (part.users > 0) return
          held.delete(key)
          part.close()
        },
      }
    },
  }
}
