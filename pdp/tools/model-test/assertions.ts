/** Assertions of a store file's tests: their questions, and whether the answer is as expected. */
import type { Model } from '../../engine/decide/model.ts'
import { TUPLES_PER_CHECK_MAX } from '../../engine/decide/search/search.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { questionIssue } from './question-issues.ts'
import type { Assertion, StoreFile, StoreTest } from './store-file.ts'
import { createWorld, type World } from './test-store.ts'

export const worldOf = (model: Model, store: StoreFile, test: StoreTest): Promise<World> =>
  createWorld(model, [...store.tuples, ...test.tuples])

/** The failure; null if the assertion holds. */
export async function failureOf(world: World, model: Model, assertion: Assertion): Promise<string | null> {
  const asked = describe(assertion)
  const issue = questionIssue(model, assertion)
  if (issue !== null) return `${asked}: ${issue}`
  try {
    const found = await answer(world, assertion)
    return difference(assertion.expected, found, asked)
  } catch (err) {
    if (err instanceof PdpError && err.code === 'condition_failed') return `${asked}: ${err.message}`
    if (!(err instanceof PdpError) || err.code !== 'evaluation_limit') throw err
    return `${asked}: it takes more than ${TUPLES_PER_CHECK_MAX.toLocaleString('en')} tuples, or depends on its own absence ("but not")`
  }
}

/** The question on one line. */
export function describe(assertion: Assertion): string {
  const { kind, relation } = assertion
  if (kind === 'check') return `check ${assertion.user} ${relation} ${assertion.object}`
  if (kind === 'list_objects') return `list_objects ${assertion.user} ${relation} ${assertion.type}`
  const filters = assertion.filters.map((f) => (f.relation === null ? f.type : `${f.type}#${f.relation}`))
  return `list_users ${filters.join(', ')} ${relation} ${assertion.object}`
}

async function answer(world: World, assertion: Assertion): Promise<boolean | readonly string[]> {
  const { relation, context } = assertion
  if (assertion.kind === 'check') return world.check(assertion.user, relation, assertion.object, context)
  if (assertion.kind === 'list_objects') return world.objects(assertion.user, relation, assertion.type, context)
  const found: string[] = []
  for (const filter of assertion.filters)
    found.push(...(await world.users(assertion.object, relation, filter, context)))
  return found
}

/** Lists are compared as sets. */
function difference(
  expected: boolean | readonly string[],
  found: boolean | readonly string[],
  asked: string,
): string | null {
  if (typeof expected === 'boolean' || typeof found === 'boolean')
    return expected === found ? null : `${asked}: expected ${expected}, got ${found}`
  const missing = [...new Set(expected)].filter((name) => !found.includes(name))
  const extra = [...new Set(found)].filter((name) => !expected.includes(name)).sort()
  if (missing.length === 0 && extra.length === 0) return null
  const parts = [
    ...(missing.length === 0 ? [] : [`missing ${missing.join(', ')}`]),
    ...(extra.length === 0 ? [] : [`unexpected ${extra.join(', ')}`]),
  ]
  return `${asked}: ${parts.join('; ')}`
}
