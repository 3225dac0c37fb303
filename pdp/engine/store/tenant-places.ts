/** Bounds how many expensive operations run at once, in total and per tenant. Others wait in order of arrival. */
import { PdpError } from '../../shared/domain/errors.ts'
import { tenantOf } from '../../shared/domain/names.ts'

type Bound = { readonly all: number; readonly tenant: number }

/** `open`: how many operations may run; `waiting`: how many may wait, by default none. */
export function createTenantPlaces(bounds: { readonly open: Bound; readonly waiting?: Bound }): {
  /** Runs `work` as soon as the bounds allow. Throws PdpError `overloaded` if too many wait, and what `work` throws. */
  run<T>(organization: string | null, work: () => Promise<T>): Promise<T>
} {
  const { open, waiting = { all: 0, tenant: 0 } } = bounds
  const held = new Map<string, number>()
  const queue: { readonly tenant: string; readonly start: () => void }[] = []
  let openCount = 0

  const heldBy = (tenant: string): number => held.get(tenant) ?? 0
  const mayStart = (tenant: string): boolean => openCount < open.all && heldBy(tenant) < open.tenant

  function enter(tenant: string): void {
    openCount += 1
    held.set(tenant, heldBy(tenant) + 1)
  }

  function leave(tenant: string): void {
    openCount -= 1
    if (heldBy(tenant) === 1) held.delete(tenant)
    else held.set(tenant, heldBy(tenant) - 1)
    const next = queue.find((one) => mayStart(one.tenant))
    if (next === undefined) return
    queue.splice(queue.indexOf(next), 1)
    enter(next.tenant)
    next.start()
  }

  return {
    async run(organization, work) {
      const tenant = organization === null ? '' : tenantOf(organization)
      if (mayStart(tenant)) enter(tenant)
      else {
        const own = queue.filter((one) => one.tenant === tenant).length
        if (queue.length >= waiting.all || own >= waiting.tenant)
          throw new PdpError('overloaded', 'too many questions of this kind wait already')
        await new Promise<void>((start) => void queue.push({ tenant, start }))
      }
      try {
        return await work()
      } finally {
        leave(tenant)
      }
    },
  }
}
