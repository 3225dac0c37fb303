/** Refuses requests with text that PostgreSQL cannot store, in any part, before a route handles them. */
import type { FastifyInstance } from 'fastify'
import type { ValidationIssue } from '../../../shared/domain/errors.ts'
import { pointer, textIssue } from '../../../shared/domain/json.ts'
import { RequestProblem } from './status.ts'

const ISSUES_MAX = 100

export function addTextGuard(app: FastifyInstance): void {
  // Runs before authentication, which already queries the database for the organization that the path names.
  app.addHook('onRequest', ({ params, query }, _reply, done) => {
    done(refusal([...at(':', textIssues(params)), ...at('?', textIssues(query))]))
  })
}

/** Throws RequestProblem `request_invalid` for a body in which a name or a text cannot be stored. */
export function guardBody(body: unknown): void {
  const problem = refusal(textIssues(body))
  if (problem !== undefined) throw problem
}

const at = (mark: ':' | '?', issues: readonly ValidationIssue[]): readonly ValidationIssue[] =>
  issues.map(({ place, message }) => ({ place: mark + place.slice(1), message }))

function refusal(issues: readonly ValidationIssue[]): RequestProblem | undefined {
  if (issues.length === 0) return undefined
  const message = issues.map((issue) => `${issue.place} ${issue.message}`).join('; ')
  return new RequestProblem('request_invalid', message, { issues })
}

/** A loop, no recursion: a body may be nested as deep as it is long. */
function textIssues(value: unknown): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const open: { place: string; value: unknown }[] = [{ place: '', value }]
  const seen = new Set<object>()
  for (let next = open.pop(); next !== undefined && issues.length < ISSUES_MAX; next = open.pop()) {
    const { place, value: found } = next
    if (typeof found === 'string') note(issues, place, found)
    // A YAML document can refer to one value in many places.
    if (typeof found !== 'object' || found === null || seen.has(found)) continue
    seen.add(found)
    for (const [name, member] of Object.entries(found)) {
      note(issues, place, name)
      if (typeof member === 'string' && textIssue(member) === null) continue
      open.push({ place: pointer(place, name), value: member })
    }
  }
  return issues
}

function note(issues: ValidationIssue[], place: string, text: string): void {
  const message = textIssue(text)
  if (message !== null) issues.push({ place, message })
}

/** Refuses messages that Node's parser accepts although a proxy in front could read them differently. */
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1'])
const ONCE = ['Host', 'Content-Type'] as const

export function addMessageGuard(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    if (!VERSIONS.has(raw.httpVersion))
      return done(new RequestProblem('request_invalid', `HTTP/${raw.httpVersion} is not a version of this listener`))
    // A repeated field is refused (RFC 9112 section 3.2, RFC 9110 section 8.3): Node reads the first one, others the last.
    const twice = ONCE.find((name) => (raw.headersDistinct[name.toLowerCase()] ?? []).length > 1)
    done(
      twice === undefined
        ? undefined
        : new RequestProblem('request_invalid', `the request has more than one ${twice} field`),
    )
  })
}
