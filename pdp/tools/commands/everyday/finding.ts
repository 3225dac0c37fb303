/** A finding of `doctor`, and its HTTP requests. */
import type { ConnectionOptions } from '../connection.ts'

export const TIMEOUT_MS = 5_000

export type Options = ConnectionOptions & { readonly routeFile?: string }
export type Examination = { readonly url: string; readonly options: Options; readonly io: NodeJS.Process }
export type Finding = {
  readonly check: string
  readonly state: 'ok' | 'failed' | 'skipped'
  readonly said: string
  /** The advice how to correct it. */
  readonly advice?: string
}

export const ok = (check: string, said: string): Finding => ({ check, state: 'ok', said })
export const skipped = (check: string, said: string): Finding => ({ check, state: 'skipped', said })
export const failed = (check: string, said: string, advice?: string): Finding => ({
  check,
  state: 'failed',
  said,
  ...(advice !== undefined && { advice }),
})

/** Never throws. `date`: the Date field of the answer. `reason`: the error code of the system or of TLS. */
export async function get(
  url: string,
  headers: { readonly [name: string]: string } = {},
): Promise<
  { readonly status: number; readonly date: string | null; readonly body: unknown } | { readonly reason: string }
> {
  try {
    const response = await fetch(url, { redirect: 'error', headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
    return {
      status: response.status,
      date: response.headers.get('date'),
      body: await response.json().catch(() => null),
    }
  } catch (err) {
    const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err
    return { reason: cause instanceof Error ? ('code' in cause ? String(cause.code) : cause.message) : String(cause) }
  }
}
