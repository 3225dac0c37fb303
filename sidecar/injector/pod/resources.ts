/** A sidecar's requests and limits: the operator's values, or the Pod's wishes within the operator's bounds. */
import { isObject, type Json, type JsonObject } from './json.ts'

export const RESOURCES = ['cpu', 'memory'] as const
export type Resource = (typeof RESOURCES)[number]
/** A request and an optional limit, as Kubernetes writes them. */
export type Amounts = { readonly request: string; readonly limit: string | null }
export type Bounds = { readonly [name in Resource]: { readonly min: string; readonly max: string } }
export type ResourceWishes = { readonly [name in Resource]: Amounts | null }

const UNITS: { readonly [suffix: string]: number } = {
  m: 0.001,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
}

/** The quantity in cores or bytes; null: the text is no quantity. */
export function quantityOf(text: Json | undefined): number | null {
  const [, digits = '', suffix = ''] = /^(\d{1,12}(?:\.\d{1,3})?)(m|k|M|G|Ki|Mi|Gi|)$/.exec(String(text)) ?? []
  const unit = UNITS[suffix]
  return digits === '' || unit === undefined ? null : Number(digits) * unit
}

/** Reads `100m` or `100m,500m`: request and limit. A text is an error message. */
export function readAmounts(text: string | undefined): Amounts | null | string {
  if (text === undefined) return null
  const [request = '', limit = null, ...rest] = text.split(',').map((part) => part.trim())
  const [least, most] = [quantityOf(request), limit === null ? null : quantityOf(limit)]
  if (least === null || (limit !== null && most === null) || rest.length > 0)
    return 'must be a request, or a request and a limit, such as 50m,500m or 64Mi,256Mi'
  return most !== null && most < least ? 'must not have a limit below its request' : { request, limit }
}

/** The rest of a sentence about the operator's bounds; null: the amounts are within them. */
export function beyondBounds({ request, limit }: Amounts, { min, max }: Bounds[Resource]): string | null {
  const [least = 0, most = 0] = [quantityOf(min) ?? 0, quantityOf(max) ?? 0]
  const isWithin = [request, limit ?? request].every((text) => {
    const value = quantityOf(text)
    return value !== null && value >= least && value <= most
  })
  return isWithin ? null : `must be from ${min} to ${max}, the operator's injector.sidecar.resourceBounds`
}

/** The sidecar's resources. `given`: the operator's; null: the Pod itself has resources, which its containers share. */
export function resourcesFor(given: JsonObject | null, { cpu, memory }: ResourceWishes): JsonObject {
  const [requests, limits] = [mapAt(given?.requests), mapAt(given?.limits)]
  for (const [name, wish] of [['cpu', cpu] as const, ['memory', memory] as const]) {
    if (wish === null) continue
    requests[name] = wish.request
    if (wish.limit !== null) limits[name] = wish.limit
    // Kubernetes would refuse a limit by the operator that is below the Pod's request.
    else if ((quantityOf(limits[name]) ?? Number.POSITIVE_INFINITY) < (quantityOf(wish.request) ?? 0))
      limits[name] = wish.request
  }
  return {
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  }
}

const mapAt = (value: Json | undefined): { [name: string]: Json } => (isObject(value) ? { ...value } : {})
