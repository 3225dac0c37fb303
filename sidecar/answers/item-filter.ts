/** Removes from an answer the items that its reader may not see, by a rule of the route file. Every other byte stays. */
import { type AnswerFilter, type AnswerForm, FilterError, type ItemCount } from '../http/edited-answer.ts'
import { RequestError } from '../request/errors.ts'
import type { AnswerRule } from '../routes/answer-rule.ts'
import { exactPlace, itemsAt, withoutItems, withoutMember } from '../routes/json-body.ts'

/** True for each item for which the check holds. Rejects with RequestError when an item lacks a value. */
type Keep = (items: readonly string[]) => Promise<readonly boolean[]>

export function itemFilter(
  rule: AnswerRule,
  keep: Keep,
  { bytesMax, shadow, count }: Pick<AnswerFilter, 'bytesMax' | 'shadow'> & { readonly count: ItemCount },
): AnswerFilter {
  let asked: Promise<unknown> = Promise.resolve()
  const counted = (items: readonly string[]): Promise<readonly boolean[]> => {
    const asking = items.length === 0 ? Promise.resolve([]) : keep(items).then(counting, asFilterError)
    asked = asking.catch(() => undefined)
    return asking
  }
  const counting = (kept: readonly boolean[]): readonly boolean[] => {
    for (const one of kept) count[one ? 'kept' : 'removed'] += 1
    return kept
  }
  const form: AnswerForm = rule.each.kind
  return {
    bytesMax,
    shadow,
    count,
    counted: () => asked,
    forms: [form],
    edit: (text) => (rule.each.kind === 'document' ? editDocument(text, rule, counted) : editEvent(text, counted)),
    keepLines(lines) {
      for (const line of lines) readJson(line)
      return counted(lines)
    },
    fields: () => (rule.tellsRemoved ? ['portcullis-removed', String(count.removed)] : []),
  }
}

async function editEvent(text: string, keep: Keep): Promise<string | null> {
  readJson(text)
  const [kept] = await keep([text])
  return kept === true ? text : null
}

async function editDocument(text: string, { each, forget }: AnswerRule, keep: Keep): Promise<string> {
  readJson(text)
  const { left, items } = unlessUnreadable(() => {
    const left = forget.reduce(withoutMember, text)
    const place = each.kind === 'document' ? exactPlace(left, each.path) : null
    if (place === null || left[place] !== '[') throw new FilterError('the answer has no list where the route names one')
    return { left, items: itemsAt(left, place) }
  })
  const kept = await keep(items.map(({ start, end }) => left.slice(start, end)))
  return kept.every(Boolean) ? left : withoutItems(left, items, kept)
}

function readJson(text: string): void {
  try {
    JSON.parse(text)
  } catch {
    throw new FilterError('the answer is not JSON')
  }
}

function unlessUnreadable<T>(read: () => T): T {
  try {
    return read()
  } catch (err) {
    return asFilterError(err)
  }
}

/** An item that lacks a value is an error of the service, not of the client. */
function asFilterError(err: unknown): never {
  if (err instanceof RequestError) throw new FilterError(`an item of the answer cannot be judged: ${err.message}`)
  throw err
}
