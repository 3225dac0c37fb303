/** A picture of an answer's reason: from the resource through folders and groups to the person, and what is missing on the way. */
import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { PermissionResult, ReasonStep } from '../../../shared/domain/decision.ts'
import { parseTuple } from '../../../shared/domain/names.ts'
import { type Arrow, type Box, drawings } from './drawing.ts'

/** How many missing relationships are drawn; the table has all. */
const MISSING_MAX = 4

export type WhyOptions = {
  readonly subject: string
  readonly result: PermissionResult
  /** The change behind each step, by the step's text. */
  readonly changes: ReadonlyMap<string, JournalEntry>
  /** Grants of roles by id, if the reader may see them. */
  readonly grants: ReadonlyMap<string, GrantShown>
}
export type GrantShown = { readonly role: string; readonly app: string | null; readonly subject: string }

/** Empty if no relationship leads anywhere. */
export function whyPicture(options: WhyOptions): Html {
  const { result, subject } = options
  const arrows = arrowsOf(options)
  if (arrows.length === 0) return EMPTY
  const ids = [...new Set(arrows.flatMap(({ from, to }) => [from, to]))]
  const boxes = ids.map(boxOf)
  const title = `Why ${subject} ${result.allowed ? 'has' : 'does not have'} ${result.relation} on ${result.resource}; the table below says the same.`
  const left = (result.reason?.missing.length ?? 0) - MISSING_MAX
  return html`<figure class="graph">
${drawings({ id: 'why', title, label: 'Picture of the answer', boxes, arrows })}${left > 0 && !result.allowed ? html`<figcaption class="note">Missing too, and in the table only: ${String(left)} more.</figcaption>` : EMPTY}</figure>`
}

function arrowsOf({ result, subject, changes, grants }: WhyOptions): readonly Arrow[] {
  const { path = [], reached = [], missing = [] } = result.reason ?? {}
  const holds = stepsToArrows(result.allowed ? path : reached, { resource: result.resource, subject, changes, grants })
  const wanted = result.allowed
    ? []
    : missing
        .slice(0, MISSING_MAX)
        .map((text) => ({ ...tupleArrow(text), below: ['missing'], state: 'missing' as const }))
  const known = new Map<string, Arrow>()
  // A step is left out if it leads only to things that are not drawn.
  const drawn = result.allowed ? holds : leadingTo(holds, new Set(wanted.map(({ from }) => from)))
  for (const arrow of [...drawn, ...wanted])
    if (arrow.from !== arrow.to) known.set(JSON.stringify([arrow.from, arrow.to, arrow.on]), arrow)
  return [...known.values()]
}

function leadingTo(arrows: readonly Arrow[], ends: ReadonlySet<string>): readonly Arrow[] {
  const reached = new Set(ends)
  // Each step comes after the one before it, so one pass from the end is enough.
  for (const { from, to } of arrows.toReversed()) if (reached.has(to)) reached.add(from)
  return arrows.filter(({ to }) => reached.has(to))
}

type Among = Pick<WhyOptions, 'subject' | 'changes' | 'grants'> & { readonly resource: string }

function stepsToArrows(steps: readonly ReasonStep[], { resource, subject, changes, grants }: Among): readonly Arrow[] {
  const rules = new Map<string, string>()
  return steps.flatMap((step): readonly Arrow[] => {
    if ('rule' in step) {
      const colon = step.rule.indexOf(': ')
      const at = step.rule.slice(0, colon)
      const rule = step.rule.slice(colon + 2)
      // Only rules with "from" are kept: the relation of the next relationship shows the other rules.
      if (rule.includes(' from ')) rules.set(at.slice(0, at.lastIndexOf('#')), rule)
      return []
    }
    const [text = ''] = Object.values(step)
    const change = changes.get(text)
    const rest = { state: 'holds' as const, ...(change !== undefined && { below: changedText(change) }) }
    if ('role_grant' in step) {
      const grant = grants.get(text)
      const on = grant === undefined ? 'a role' : `role ${grant.role}`
      const to = grant?.subject ?? subject
      return [{ from: resource, to, title: `${on} for ${to}`, on, ...rest }]
    }
    const arrow = tupleArrow(text)
    return [{ ...arrow, on: rules.get(arrow.from) ?? arrow.on, ...rest }]
  })
}

const changedText = ({ atMs, actor }: JournalEntry): readonly string[] => [
  new Date(atMs).toISOString().slice(0, 10),
  `by ${actor.replace(/^user:/, '')}`,
]

function tupleArrow(text: string): Arrow & { readonly on: string } {
  const { object, relation, subject } = parseTuple(text)
  const hash = subject.indexOf('#')
  return { from: object, to: hash === -1 ? subject : subject.slice(0, hash), title: text, on: relation }
}

function boxOf(id: string): Box {
  const colon = id.indexOf(':')
  return { id, kind: id.slice(0, colon), text: id.slice(colon + 1) }
}
