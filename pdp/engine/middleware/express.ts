/** `portcullis/express`: a guard for routes of Express. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RelationModel } from '../../shared/domain/relation-types.ts'
import { type Caller, createGuard, type GuardArguments, type GuardOptions } from './guard.ts'
import { answer, requestOf, requireCaller } from './node-request.ts'

export type { Caller, GuardOptions } from './guard.ts'

type Handler = (
  req: IncomingMessage & { readonly originalUrl: string; readonly params: unknown },
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * `allow(relation, resource)` makes the handler that stands before yours; `callerOf(req)` says who was allowed.
 *
 * @example
 * ```ts
 * const { allow, callerOf } = expressGuard({ pdp, issuer: 'https://id.example.com', resource: 'https://app.example.com' })
 * app.get('/invoices/:id', allow('viewer', 'invoice:{id}'), (req, res) => {
 *   res.send(`hello ${callerOf(req).subject.id}`)
 * })
 * ```
 */
export function expressGuard<M extends RelationModel = RelationModel>(options: GuardOptions<M>) {
  const guard = createGuard(options)
  const callers = new WeakMap<object, Caller>()
  return {
    allow:
      (...check: GuardArguments<M>): Handler =>
      (req, res, next) => {
        guard(requestOf(req, { target: req.originalUrl, parameters: req.params }), check).then((outcome) => {
          if ('denial' in outcome) return answer(res, outcome.denial)
          callers.set(req, outcome.caller)
          next()
        }, next)
      },
    /** The caller. Throws TypeError if no guard has allowed the request. */
    callerOf: (req: object): Caller => requireCaller(callers.get(req)),
  }
}
