/** `portcullis/hono`: a guard for routes of Hono. */
import type { RelationModel } from '../../shared/domain/relation-types.ts'
import { type Caller, createGuard, type GuardArguments, type GuardOptions } from './guard.ts'
import { requireCaller } from './node-request.ts'

export type { Caller, GuardOptions } from './guard.ts'

type HonoContext = { readonly req: { readonly raw: Request; param(): unknown } }

/**
 * `allow(relation, resource)` makes the middleware that stands before your handler; `callerOf(c)` says who was allowed.
 *
 * @example
 * ```ts
 * const { allow, callerOf } = honoGuard({ pdp, issuer: 'https://id.example.com', resource: 'https://app.example.com' })
 * hono.get('/invoices/:id', allow('viewer', 'invoice:{id}'), (c) => c.text(callerOf(c).subject.id))
 * ```
 */
export function honoGuard<M extends RelationModel = RelationModel>(options: GuardOptions<M>) {
  const guard = createGuard(options)
  const callers = new WeakMap<object, Caller>()
  return {
    allow:
      (...check: GuardArguments<M>): ((c: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>) =>
      async ({ req }, next) => {
        const { raw } = req
        const field = (name: string): readonly string[] => [raw.headers.get(name) ?? []].flat()
        const outcome = await guard(
          {
            method: raw.method,
            path: new URL(raw.url).pathname,
            // Fetch joins repeated fields with commas; no token and no proof has a comma, so they are refused.
            authorization: field('authorization'),
            proofs: field('dpop'),
            parameters: req.param(),
          },
          check,
        )
        if ('denial' in outcome) {
          const { status, headers, body } = outcome.denial
          return new Response(body, { status, headers })
        }
        callers.set(raw, outcome.caller)
        await next()
        return undefined
      },
    /** The caller. Throws TypeError if no guard has allowed the request. */
    callerOf: ({ req }: { readonly req: { readonly raw: Request } }): Caller => requireCaller(callers.get(req.raw)),
  }
}
