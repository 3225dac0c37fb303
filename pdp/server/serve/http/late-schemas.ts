/** Compiles the schemas of a route at its first call: compiling all of them took a sixth of the time to start. */
import type { FastifyInstance, FastifySchemaCompiler } from 'fastify'

type Validate = ReturnType<FastifySchemaCompiler<unknown>>

/** Call it before routes are added. Schemas of questions are compiled at the start, because a question has 1 s at most. */
export function compileLate(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.deadline !== 'decision') route.validatorCompiler ??= late(app)
  })
}

function late(app: FastifyInstance): FastifySchemaCompiler<unknown> {
  return (part) => {
    let compiled: Validate | null = null
    const validate: Validate = (data) => {
      // Routes for questions, which are compiled at the start, have made the framework's compiler by now.
      compiled ??= app.validatorCompiler?.(part) ?? null
      if (compiled === null) throw new TypeError('there is no compiler of schemas')
      const result = compiled(data)
      validate.errors = compiled.errors ?? null
      return result
    }
    return validate
  }
}
