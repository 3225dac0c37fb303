/** `portcullis/http`: a guard for servers of `node:http` and `node:http2`. */
import type { RelationModel } from '../../shared/domain/relation-types.ts'
import { type Caller, createGuard, type GuardArguments, type GuardOptions } from './guard.ts'
import { answer, type NodeAnswer, type NodeRequest, requestOf } from './node-request.ts'

export type { Caller, GuardOptions } from './guard.ts'

/**
 * Answers a request that is not allowed and returns null; else returns who sent it.
 *
 * @example
 * ```ts
 * const allow = httpGuard({ pdp, issuer: 'https://id.example.com', resource: 'https://app.example.com' })
 * createServer(async (req, res) => {
 *   const caller = await allow(req, res, 'viewer', 'invoice:42')
 *   if (caller !== null) res.end(`hello ${caller.subject.id}`)
 * })
 * ```
 */
export function httpGuard<M extends RelationModel = RelationModel>(options: GuardOptions<M>) {
  const guard = createGuard(options)
  return async (
    req: NodeRequest & { readonly url?: string | undefined },
    res: NodeAnswer,
    ...check: GuardArguments<M>
  ): Promise<Caller | null> => {
    const outcome = await guard(requestOf(req, { target: req.url ?? '', parameters: {} }), check)
    if ('caller' in outcome) return outcome.caller
    answer(res, outcome.denial)
    return null
  }
}
