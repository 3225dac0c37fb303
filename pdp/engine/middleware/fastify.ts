/** `portcullis/fastify`: a guard for routes of Fastify. */
import type { RelationModel } from '../../shared/domain/relation-types.ts'
import { type Caller, createGuard, type GuardArguments, type GuardOptions } from './guard.ts'
import { type NodeRequest, requestOf, requireCaller } from './node-request.ts'

export type { Caller, GuardOptions } from './guard.ts'

type FastifyRequest = { readonly raw: NodeRequest; readonly originalUrl: string; readonly params: unknown }
type FastifyReply = {
  code(status: number): FastifyReply
  headers(fields: { [name: string]: string }): FastifyReply
  send(body: string): FastifyReply
}

/**
 * `allow(relation, resource)` makes an `onRequest` hook; `callerOf(request)` says who was allowed.
 *
 * @example
 * ```ts
 * const { allow, callerOf } = fastifyGuard({ pdp, issuer: 'https://id.example.com', resource: 'https://app.example.com' })
 * fastify.get('/invoices/:id', { onRequest: allow('viewer', 'invoice:{id}') }, async (request) => callerOf(request).subject)
 * ```
 */
export function fastifyGuard<M extends RelationModel = RelationModel>(options: GuardOptions<M>) {
  const guard = createGuard(options)
  const callers = new WeakMap<object, Caller>()
  return {
    allow:
      (...check: GuardArguments<M>): ((request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) =>
      async (request, reply) => {
        const { raw, originalUrl: target, params: parameters } = request
        const outcome = await guard(requestOf(raw, { target, parameters }), check)
        if ('caller' in outcome) return void callers.set(raw, outcome.caller)
        const { status, headers, body } = outcome.denial
        return reply
          .code(status)
          .headers({ ...headers })
          .send(body)
      },
    /** The caller. Throws TypeError if no guard has allowed the request. */
    callerOf: ({ raw }: Pick<FastifyRequest, 'raw'>): Caller => requireCaller(callers.get(raw)),
  }
}
