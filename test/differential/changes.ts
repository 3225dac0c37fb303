/**
 * `npm run differential -- --changes N --worlds M`: N random changes of a model. Each example of `model diff` is asked of a real
 * OpenFGA, and what was proved is looked for in M random worlds, answered by our engine.
 */
import { compileModel } from '../../pdp/engine/decide/language/model-language.ts'
import type { Model } from '../../pdp/engine/decide/model.ts'
import { PdpError } from '../../pdp/shared/domain/errors.ts'
import { type Difference, diffModels, type Example } from '../../pdp/tools/model-change/model-diff.ts'
import { tupleIssue } from '../../pdp/tools/model-test/question-issues.ts'
import { createWorld } from '../../pdp/tools/model-test/test-store.ts'
import type { FileTuple } from '../../pdp/tools/model-test/tuple-file.ts'
import type { Peer } from './openfga.ts'
import { randomWorld } from './worlds.ts'

const TYPES = ['team', 'folder', 'doc']
const USERS = ['user:a', 'user:b', 'user:c', 'robot:a']

type Side = { readonly text: string; readonly model: Model }
export type Change = { readonly seed: number; readonly before: Side; readonly after: Side }

/** Two definitions come from another model. Null: they do not fit together. */
export function randomChange(seed: number): Change | null {
  const text = randomWorld(seed).model
  const lines = text.split('\n')
  const defined = lines.flatMap((line, i) => (/^ {4}define r/.test(line) ? [i] : []))
  const other = randomWorld(seed + 500_000).model.split('\n')
  const others = other.filter((line) => /^ {4}define r/.test(line))
  for (const i of [seed % 12, (seed * 5) % 12]) lines[defined[i] ?? 0] = others[i] ?? ''
  // Conditions of the other model come with its definitions.
  const known = new Set(text.match(/^condition \w+/gm))
  const more = other.join('\n').match(/^condition \w+\([\s\S]*?^\}/gm) ?? []
  for (const condition of more) if (!known.has(/^condition \w+/.exec(condition)?.[0] ?? '')) lines.push(condition)
  try {
    const side = (of: string): Side => ({ text: of, model: compileModel(of, { builtIn: false }) })
    return { seed, before: side(text), after: side(`${lines.join('\n')}\n`) }
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}

export const fileTuples = (seed: number): readonly FileTuple[] =>
  randomWorld(seed).tuples.map(({ object, relation, subject, condition }) => ({
    ...{ object, relation, user: subject, condition: condition ?? null },
    ...{ file: '', line: 0 },
  }))

/** What was said to be impossible and happens in the world, as lines. */
export async function contradictions(
  { seed, before, after }: Change,
  found: readonly Difference[],
  tuples: readonly FileTuple[],
): Promise<{ readonly lines: readonly string[]; readonly moved: number }> {
  const under = ({ model }: Side) =>
    createWorld(
      model,
      tuples.filter((tuple) => tupleIssue(model, tuple) === null),
    )
  const [was, is] = [await under(before), await under(after)]
  const lines: string[] = []
  let moved = 0
  for (const { type, relation, subject, gain, lose } of found) {
    if (!TYPES.includes(type) || (gain.kind !== 'nobody' && lose.kind !== 'nobody')) continue
    for (const user of USERS.filter((name) => name.startsWith(`${subject}:`)))
      for (const number of [0, 1, 2]) {
        const asked = [user, relation, `${type}:${number}`, {}] as const
        const had = await was.check(...asked).catch(() => null)
        const has = await is.check(...asked).catch(() => null)
        if (had !== has) moved += 1
        const gained = gain.kind === 'nobody' && had === false && has === true
        const lost = lose.kind === 'nobody' && had === true && has === false
        if (gained || lost) lines.push(`seed ${seed}: ${user} ${relation} ${type}:${number}: ${had} becomes ${has}`)
      }
  }
  return { lines, moved }
}

/** Whether OpenFGA says the same of an example: allowed under the one model, and not under the other. */
async function isConfirmed(peer: Peer, { few, many }: { few: Side; many: Side }, relation: string, example: Example) {
  const { subject, object, context } = example
  const answers: unknown[] = []
  for (const { text, model } of [few, many]) {
    if (model.get(object.replace(/:.*/, ''))?.has(relation) !== true) {
      answers.push(false)
      continue
    }
    const tuples = example.tuples
      .filter((tuple) => tupleIssue(model, tuple) === null)
      .map(({ object, relation, user, condition }) => ({
        ...{ object, relation, subject: user, expiresAtMs: null },
        ...(condition === null ? {} : { condition }),
      }))
    const store = await peer.open({ ...randomWorld(1), model: text, tuples })
    if ('refused' in store) return null
    const [said] = await store.checks([{ subject, relation, object, context, contextual: [] }])
    answers.push(said !== undefined && 'value' in said ? said.value : null)
  }
  return answers[0] === true && answers[1] === false
}

export async function compareChanges(
  peer: Peer,
  { changes, worlds, firstSeed }: { readonly changes: number; readonly worlds: number; readonly firstSeed: number },
): Promise<number> {
  const count = { changes: 0, nobody: 0, somebody: 0, undecided: 0, confirmed: 0, refused: 0, worlds: 0, moved: 0 }
  const failures: string[] = []
  for (let seed = firstSeed; count.changes < changes && failures.length < 20; seed += 1) {
    const change = randomChange(seed)
    if (change === null) continue
    count.changes += 1
    const { before, after } = change
    const found = await diffModels({ before: before.model, after: after.model })
    for (const { type, relation, gain, lose } of found)
      for (const [outcome, few, many] of [
        [gain, after, before],
        [lose, before, after],
      ] as const) {
        count[outcome.kind] += 1
        if (outcome.kind !== 'somebody') continue
        const isRight = await isConfirmed(peer, { few, many }, relation, outcome.example)
        if (isRight === null) count.refused += 1
        else if (isRight) count.confirmed += 1
        else
          failures.push(
            `seed ${seed}: ${type}#${relation}: OpenFGA does not confirm ${JSON.stringify(outcome.example)}`,
          )
      }
    for (let world = 0; world < worlds; world += 1) {
      const { lines, moved } = await contradictions(change, found, fileTuples(seed * 1_000 + world))
      failures.push(...lines)
      count.worlds += 1
      count.moved += moved
    }
  }
  for (const failure of failures) console.log(failure)
  console.log(`${JSON.stringify(count)}, ${failures.length} failed`)
  return failures.length === 0 ? 0 : 1
}
