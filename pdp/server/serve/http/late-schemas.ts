/** Compiles the schemas of a route when it is first called: those of all routes together are a sixth of the time to start. */
import type { FastifyInstance, FastifySchemaCompiler } from 'fastify'

type Validate = ReturnType<FastifySchemaCompiler<unknown>>

/** Before any route. Those for questions are compiled at the start: their first caller has a second at most. */
export function compileLate(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.deadline !== 'decision') route.validatorCompiler ??= late(app)
  })
}

function late(app: FastifyInstance): FastifySchemaCompiler<unknown> {
  return (part) => {
    let compiled: Validate | null = null
    const validate: Validate = (data) => {
      // The framework makes its compiler for the routes for questions, which are not late.
      compiled ??= app.validatorCompiler?.(part) ?? null
      if (compiled === null) throw new TypeError('there is no compiler of schemas')
      const result = compiled(data)
      validate.errors = compiled.errors ?? null
      return result
    }
    return validate
  }
}
