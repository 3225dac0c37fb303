/** Refuses messages that Node's parser accepts although a proxy in front could read them differently. */
import type { FastifyInstance } from 'fastify'
import { RequestProblem } from '../problems/status.ts'

const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1'])

export function addMessageGuard(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    if (!VERSIONS.has(raw.httpVersion))
      return done(new RequestProblem('request_invalid', `HTTP/${raw.httpVersion} is not a version of this listener`))
    // RFC 9112 section 3.2
    if ((raw.headersDistinct.host ?? []).length > 1)
      return done(new RequestProblem('request_invalid', 'the request has more than one Host field'))
    done()
  })
}
