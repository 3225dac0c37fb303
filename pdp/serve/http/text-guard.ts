/** Refuses text that PostgreSQL cannot hold, wherever in a request it stands, before any route sees it. */
import type { FastifyInstance } from 'fastify'
import type { ValidationIssue } from '../../domain/errors.ts'
import { RequestProblem } from '../problems/status.ts'
import { isStream } from './bodies.ts'
import { pointer, textIssue } from './schemas.ts'

const MISTAKES_MAX = 100

export function addTextGuard(app: FastifyInstance): void {
  // Before the caller is authenticated, which already asks for the organization that the path names.
  app.addHook('onRequest', async ({ params, query }) => {
    refuse([...at(':', textIssues(params)), ...at('?', textIssues(query))])
  })
  app.addHook('preValidation', async ({ body }) => {
    if (!isStream(body)) refuse(textIssues(body))
  })
}

const at = (mark: ':' | '?', mistakes: readonly ValidationIssue[]): readonly ValidationIssue[] =>
  mistakes.map(({ place, message }) => ({ place: mark + place.slice(1), message }))

function refuse(mistakes: readonly ValidationIssue[]): void {
  if (mistakes.length === 0) return
  const message = mistakes.map((mistake) => `${mistake.place} ${mistake.message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { mistakes })
}

/** Without recursion: a body may be nested as deep as it is long. */
function textIssues(value: unknown): readonly ValidationIssue[] {
  const mistakes: ValidationIssue[] = []
  const open: { place: string; value: unknown }[] = [{ place: '', value }]
  const seen = new Set<object>()
  for (let next = open.pop(); next !== undefined && mistakes.length < MISTAKES_MAX; next = open.pop()) {
    const { place, value: found } = next
    if (typeof found === 'string') note(mistakes, place, found)
    // A YAML document may name one value in many places.
    if (typeof found !== 'object' || found === null || seen.has(found)) continue
    seen.add(found)
    for (const [name, member] of Object.entries(found)) {
      note(mistakes, place, name)
      if (typeof member === 'string' && textIssue(member) === null) continue
      open.push({ place: pointer(place, name), value: member })
    }
  }
  return mistakes
}

function note(mistakes: ValidationIssue[], place: string, text: string): void {
  const message = textIssue(text)
  if (message !== null) mistakes.push({ place, message })
}
