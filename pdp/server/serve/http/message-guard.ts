/** Refuses messages that Node's parser accepts although a proxy in front could read them differently. */
import type { FastifyInstance } from 'fastify'
import { RequestProblem } from './status.ts'

const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1'])
const ONCE = ['Host', 'Content-Type'] as const

export function addMessageGuard(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    if (!VERSIONS.has(raw.httpVersion))
      return done(new RequestProblem('request_invalid', `HTTP/${raw.httpVersion} is not a version of this listener`))
    // RFC 9112 section 3.2, RFC 9110 section 8.3. Node reads the first field, others the last one.
    const twice = ONCE.find((name) => (raw.headersDistinct[name.toLowerCase()] ?? []).length > 1)
    done(
      twice === undefined
        ? undefined
        : new RequestProblem('request_invalid', `the request has more than one ${twice} field`),
    )
  })
}
