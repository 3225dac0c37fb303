/** Mistakes with conditions and with tuples of questions that the simulation must find, beside those of mistakes.ts. */
import type { Edit, Mistake } from '../mistakes.ts'

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace })

export const CONDITION_MISTAKES: readonly Mistake[] = [
  {
    name: 'an answer that used the context of a question is kept for those after it',
    setup: { focus: 'conditions' },
    foundAt: 6,
    edits: [
      edit(
        'engine/decide/conditions/run.ts',
        'const made = { condition, asked: condition.argumentsOf(this.#context), evaluations: new Map() }',
        'const made = { condition, asked: condition.argumentsOf(this.#context), evaluations: ((condition as unknown as { kept?: Map<TupleCondition, Evaluation> }).kept ??= new Map()) }',
      ),
    ],
  },
  {
    name: 'the context of a tuple loses to that of the question',
    setup: { focus: 'conditions' },
    foundAt: 2,
    edits: [
      edit(
        'engine/decide/conditions/condition.ts',
        'name in stored.values || name in stored.mismatches ? stored : asked',
        'name in asked.values ? asked : stored',
      ),
    ],
  },
  {
    name: 'a tuple of a question is kept for those after it',
    setup: { focus: 'conditions' },
    foundAt: 1,
    edits: [
      edit(
        'engine/decide/views/contextual-tuples.ts',
        'return tuples.length === 0 ? rest : new ContextualView(rest, log, tuples)',
        'kept.push(...tuples); return new ContextualView(rest, log, kept)',
      ),
      edit(
        'engine/decide/views/contextual-tuples.ts',
        'if (model === null || (tuples.length === 0 && without.length === 0)) return undefined',
        'if (model === null) return undefined',
      ),
      edit(
        'engine/decide/views/contextual-tuples.ts',
        'export function relationViewOf(',
        'const kept: ContextualTuple[] = []\nexport function relationViewOf(',
      ),
    ],
  },
  {
    name: 'a tuple with a condition outlives its deletion',
    setup: { focus: 'conditions' },
    foundAt: 5,
    edits: [edit('engine/store/cache/subject-set.ts', 'this.#conditional?.delete(subject)', '')],
  },
]
