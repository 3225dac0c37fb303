/** One deadline for a whole call: what is not answered in time, whatever it waits for, is an error. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { onceLate } from '../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../shared/domain/errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `none`: calls that stream, or look at whole tables. By default `call`. */
    readonly deadline?: 'decision' | 'call' | 'none'
  }
}

/** From the complete arrival of a request. */
export type Deadlines = {
  /** For a question. */
  readonly decisionMs: number
  /** For any other call, writes included. */
  readonly callMs: number
}
export const DEADLINES: Deadlines = { decisionMs: 1_000, callMs: 5_000 }

/** `refuse` answers the request. */
export function addDeadline(
  app: FastifyInstance,
  { decisionMs, callMs }: Deadlines,
  refuse: (err: Error, request: FastifyRequest, reply: FastifyReply) => void,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { deadline = 'call' } = request.routeOptions.config
    if (deadline === 'none' || request.is404) return done()
    const end = onceLate(request.raw, deadline === 'decision' ? decisionMs : callMs, () => {
      const isAnswered = reply.sent || reply.raw.headersSent
      if (!isAnswered) refuse(new PdpError('store_unavailable', 'there was no answer in time'), request, reply)
    })
    reply.raw.once('close', end)
    done()
  })
}
