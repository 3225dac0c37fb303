/** Settings of a gateway that this command does not know. */
import { type Entry, entriesOf, type Tree } from '../read/tree.ts'
import { at, type Finding } from './finding.ts'

/** Members of what asks the door (`what` in the message) of which nobody here knows what they do. */
export const unknownMembers = (
  asking: Tree | null,
  what: string,
  isKnown: (entry: Entry) => boolean,
): readonly Finding[] =>
  entriesOf(asking)
    .filter((entry) => !isKnown(entry))
    .map((entry) => at(entry)('unseen', `${entry.key} of ${what} is not known here: it may decide`, 'judge it by hand'))
