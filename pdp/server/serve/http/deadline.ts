/** The deadline of a call: without an answer in time it ends with an error, whatever it waits for. */
import type { FastifyInstance } from 'fastify'
import { onceLate } from '../../../shared/base/with-timeout.ts'
import { PdpError } from '../../../shared/domain/errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The kind of deadline. `none`: the call streams or reads whole tables. Default: `call`. */
    readonly deadline?: 'decision' | 'call' | 'none'
  }
}

/** Time limits from a request's complete arrival to its answer. */
export type Deadlines = {
  /** The limit for a question. */
  readonly decisionMs: number
  /** The time for any other call, writes included. */
  readonly callMs: number
}
export const DEADLINES: Deadlines = { decisionMs: 1_000, callMs: 5_000 }

/** Adds deadlines. A late call gets an error in the form of its route's other errors. */
export function addDeadline(app: FastifyInstance, { decisionMs, callMs }: Deadlines): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { deadline = 'call' } = request.routeOptions.config
    if (deadline === 'none' || request.is404) return done()
    const end = onceLate(request.raw, deadline === 'decision' ? decisionMs : callMs, () => {
      const isAnswered = reply.sent || reply.raw.headersSent
      if (!isAnswered) reply.send(new PdpError('store_unavailable', 'there was no answer in time'))
    })
    reply.raw.once('close', end)
    done()
  })
}
