/** A span for each HTTP request; calls to other servers for it are its children. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Spans } from '../../../shared/process/tracing/spans.ts'
import type { Span } from '../../../shared/process/tracing/tracing.ts'

export function addSpans(app: FastifyInstance, spans: Spans): void {
  const open = new WeakMap<FastifyRequest, Span>()
  app.addHook('onRequest', (request, _reply, done) => {
    const { traceparent } = request.headers
    const span = spans.begin(request.method, 'server', typeof traceparent === 'string' ? traceparent : null)
    open.set(request, span)
    spans.within(span, done)
  })
  // Reading a body ends the context that began above.
  app.addHook('preValidation', (request, _reply, done) => {
    const span = open.get(request)
    if (span === undefined) done()
    else spans.within(span, done)
  })
  app.addHook('onResponse', async (request, reply) => {
    const span = open.get(request)
    const status = reply.raw.statusCode
    const { url: route } = request.routeOptions
    if (route !== undefined) span?.rename(`${request.method} ${route}`)
    span?.set({
      'http.request.method': request.method,
      ...(route !== undefined && { 'http.route': route }),
      'http.response.status_code': status,
      'portcullis.request_id': request.id,
    })
    span?.end(status >= 500 ? String(status) : null)
  })
}
