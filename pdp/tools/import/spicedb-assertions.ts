/** Checks a validation file's assertions and expected relations against the plan made from it. */
import { compileModel } from '../../engine/decide/language/model-language.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { createWorld, type World } from '../model-test/test-store.ts'
import { parsedObject, refused } from './mapping.ts'
import type { SpiceDbPlan } from './spicedb.ts'
import type { SpiceDbFile } from './spicedb-file.ts'

type Answer = SpiceDbFile['assertions'][number]['expected']

/** The failures, each beginning with its line. @param nowMs relationships that have expired by then do not count. */
export async function playAssertions(
  plan: SpiceDbPlan,
  of: SpiceDbFile,
  nowMs: number,
): Promise<{ readonly passed: number; readonly failures: readonly string[] }> {
  if (of.assertions.length + of.expectations.length === 0) return { passed: 0, failures: [] }
  const tuples = plan.tuples.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > nowMs)
  const stored = tuples.map(({ object, relation, subject, condition = null }, line) => {
    return { user: subject, relation, object, condition, file: '', line }
  })
  const world = await createWorld(compileModel(plan.model), stored)
  const failures: string[] = []
  let passed = 0
  const play = async ({ line, what }: { line: number; what: string }, problem: () => Promise<string | null>) => {
    const found = await problem().catch((err: unknown) => {
      if (err instanceof PdpError) return err.message
      throw err
    })
    if (found === null) passed++
    else failures.push(`${line}: ${what}: ${found}`)
  }
  for (const assertion of of.assertions)
    await play(assertion, async () => {
      const [name = '', json] = assertion.what.split(/ with (?=\{)/, 2)
      const context = json === undefined ? {} : parsedObject(json)
      if (context === null) throw refused('the context is not a JSON object')
      return difference(assertion.expected, await answer(world, plan.readTuple(name.trim()), context))
    })
  for (const expectation of of.expectations)
    await play(expectation, async () => {
      const candidates = new Set(tuples.map(({ subject }) => subject).filter((subject) => !subject.includes('#')))
      return expectationProblem(expectation, { world, plan, candidates })
    })
  return { passed, failures }
}

const difference = (expected: Answer, found: Answer): string | null =>
  expected === found ? null : `expected ${expected}, got ${found}`

async function answer(world: World, { object, relation, subject }: Tuple, context: JsonObject): Promise<Answer> {
  try {
    return (await world.check(subject, relation, object, context)) ? 'true' : 'false'
  } catch (err) {
    if (err instanceof PdpError && err.code === 'condition_failed' && err.missingContext.length > 0) return 'caveated'
    throw err
  }
}

const SUBJECT = /^\[\s*([^\s\]]+?)(\[\.\.\.\])?\s*(?:-\s*\{([^}]*)\})?\s*\]/

/** The failure; null if exactly the listed subjects have the permission, among those that relationships name. */
async function expectationProblem(
  { what, subjects }: SpiceDbFile['expectations'][number],
  of: { readonly world: World; readonly plan: SpiceDbPlan; readonly candidates: ReadonlySet<string> },
): Promise<string | null> {
  const { world, plan, candidates } = of
  const at = (subject: string): Tuple => plan.readTuple(`${what}@${subject}`)
  const expected = new Map<string, Answer>()
  for (const text of subjects) {
    const [, subject, caveated, exceptions] = SUBJECT.exec(text) ?? []
    if (subject === undefined) return `"${text}" is not a subject in brackets`
    expected.set(at(subject).subject, caveated === undefined ? 'true' : 'caveated')
    for (const one of exceptions?.split(',') ?? []) {
      const [name = '', doubt] = one.trim().split('[')
      expected.set(at(name).subject, doubt === undefined ? 'false' : 'caveated')
    }
  }
  const { object, relation } = at('user:any')
  for (const subject of new Set([...expected.keys(), ...candidates])) {
    const everybody = expected.get(`${subject.slice(0, subject.indexOf(':'))}:*`)
    const found = await answer(world, { object, relation, subject, expiresAtMs: null }, {})
    const problem = difference(expected.get(subject) ?? everybody ?? 'false', found)
    if (problem !== null) return `${subject}: ${problem}`
  }
  return null
}
