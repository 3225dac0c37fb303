/** `answer` of a route: the items of an answer that its reader may see. */
import type { Node } from 'yaml'
import { type AnswerRule, type Each, isKnownAtAnswer, parseEach, parseMember } from '../../routes/answer-rule.ts'
import { type Check, sourcesOf } from '../../routes/checks.ts'
import { describeSource } from '../../routes/template.ts'
import { definition, FLAG, listOf, type Members, optional, required, textLike } from './schema.ts'
import type { YamlReader } from './yaml-reader.ts'

export const ANSWER = {
  each: required(
    textLike(/^(?:\$(?:\.[A-Za-z0-9_-]+)*\[\*\]|ndjson|sse)$/),
    'Where the items are: $.items[*] is the list that is the member items of a JSON document, $[*] the document itself; ndjson: each line; sse: the data of each event.',
  ),
  keep: required(
    definition('check'),
    'A check for each item, which may read {item.id}, and {item} where the items are texts. An item stays if it holds.',
  ),
  forget: optional(
    listOf(textLike(/^\$(?:\.[A-Za-z0-9_-]+)+$/)),
    'Members of the document to leave out, such as [$.total], because they tell of the other items. Default: none.',
  ),
  removed: optional(
    FLAG,
    'true: the field Portcullis-Removed says how many items of a document were left out, which tells what one may not see. Default: false.',
  ),
} as const satisfies Members

/** Reads a rule for answers and reports its errors; null: it has errors. */
export function readAnswerRule(
  reader: YamlReader,
  node: Node,
  readCheck: (node: Node | null) => Check | null,
): AnswerRule | null {
  const members = reader.members(node, 'answer', ANSWER)
  if (members === null || members.each === null || members.keep === null) return null
  const each = parseEach(reader.text(members.each, 'each') ?? '')
  if (each === null)
    reader.report(members.each, 'each must be ndjson, sse, or the path of one list, such as $.items[*] or $[*]')
  const keep = readCheck(members.keep)
  for (const source of keep === null ? [] : sourcesOf(keep))
    if (!isKnownAtAnswer(source))
      reader.report(members.keep, `keep cannot read ${describeSource(source)}: only the item, the path and the token`)
  if (keep !== null && !sourcesOf(keep).some(({ from }) => from === 'item'))
    reader.report(members.keep, 'keep reads nothing of the item, such as {item.id}: it would keep all or none')
  const forget = readForgotten(reader, members.forget, each)
  const tellsRemoved = members.removed !== null && reader.boolean(members.removed, 'removed') === true
  if (tellsRemoved && each !== null && each.kind !== 'document')
    reader.report(members.removed, 'removed is for documents: the fields of a stream leave before its items')
  return each === null || keep === null ? null : { each, keep, forget, tellsRemoved }
}

function readForgotten(reader: YamlReader, node: Node | null, each: Each | null): readonly (readonly string[])[] {
  if (node === null) return []
  if (each !== null && each.kind !== 'document')
    reader.report(node, 'forget is for documents, which have other members')
  return (reader.items(node, 'forget') ?? []).flatMap((item) => {
    const path = parseMember(reader.text(item, 'forget') ?? '')
    if (path === null || path.length === 0) reader.report(item, 'forget must be the path of a member, such as $.total')
    else if (each?.kind === 'document' && path.every((name, at) => name === each.path[at]))
      reader.report(item, 'forget names the list itself')
    else return [path]
    return []
  })
}
