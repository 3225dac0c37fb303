/** The page that a person gets instead of a problem document: what is missing, and what to do. */
import { type Html, html } from '../../pdp/shared/base/html.ts'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { fill } from '../../pdp/shared/pages/words.ts'
import type { Denial } from '../enforce/denial.ts'
import { type DenialAnswer, describeDenial } from '../enforce/denial-response.ts'
import { type Act, askLine, askParagraph, type Frame, pageAnswer, shownStrong } from './pages.ts'
import type { Words } from './words/words.ts'

const HEADS: { readonly [code in ProblemCode]?: keyof Words['denials'] } = {
  token_missing: 'token_missing',
  token_invalid: 'token_invalid',
  token_expired: 'token_expired',
  step_up_required: 'step_up_required',
  permission_denied: 'permission_denied',
  entitlement_required: 'entitlement_required',
  scope_insufficient: 'scope_insufficient',
  route_unknown: 'route_unknown',
  method_unsupported: 'method_unsupported',
  origin_refused: 'origin_refused',
  busy: 'busy',
  overloaded: 'busy',
  upstream_unavailable: 'upstream_unavailable',
  upstream_timeout: 'upstream_unavailable',
}
/** Denials that would not happen to another person, or after a change of rights. */
const REFUSALS: ReadonlySet<ProblemCode> = new Set(['permission_denied', 'entitlement_required', 'scope_insufficient'])
const SERVER_ERRORS = 500

export const isRefusal = (code: ProblemCode): boolean => REFUSALS.has(code)

/** `acts`: what the person can do about it. */
export function denialPage(
  frame: Frame,
  { code, members, subject }: Pick<Denial, 'code' | 'members' | 'subject'>,
  about: { readonly requestId: string; readonly path: string; readonly acts: readonly Act[] },
): DenialAnswer {
  const { requestId, path, acts } = about
  const { words } = frame
  const problem = describeDenial(code, members, { requestId, metadataUrl: null })
  const head = HEADS[code] ?? (problem.status >= SERVER_ERRORS ? 'undecided' : 'other')
  const { title, text } = words.denials[head]
  const missing = missingOf(members, words)
  // Nobody can help with a wrong address, so its page names nobody to ask.
  const asks = isRefusal(code) ? [askParagraph(frame)] : problem.status >= SERVER_ERRORS ? askLine(frame) : []
  return pageAnswer(
    frame,
    problem.status,
    {
      title,
      paragraphs: [text, ...(missing === null ? [] : [missing]), ...asks],
      acts,
      about: [
        ...(subject === null ? [] : [[words.about.who, subject] as const]),
        [words.about.page, path],
        [words.about.reason, code],
        ...(members.detail === undefined ? [] : [[words.about.detail, members.detail, 'en'] as const]),
        [words.about.request, requestId],
      ],
    },
    otherFields(problem.fields),
  )
}

/** The missing permission in the words of the route and the request. Reasons for the log are not shown. */
function missingOf({ entitlement, scope, missing }: Denial['members'], { missing: texts }: Words): Html | null {
  if (entitlement !== undefined) return fill(texts.entitlement, { key: shownStrong(entitlement) })
  if (scope !== undefined) return fill(texts.scope, { scope: shownStrong(scope) })
  if (missing === undefined) return null
  if (missing === null) return html`${texts.noOrganization}`
  const { relation, resource } = missing
  const [type = '', ...id] = resource.split(':')
  const names = { relation: shownStrong(spoken(relation)), type: shownType(type), id: shownStrong(id.join(':')) }
  return fill(type === 'organization' ? texts.organization : texts.thing, names)
}

const spoken = (name: string): string => name.replaceAll('_', ' ')
const shownType = (type: string): Html => html`${spoken(type)}`

const REPLACED = new Set(['content-type', 'content-length', 'cache-control'])

/** The problem document's fields that the page needs, too, such as challenges. */
const otherFields = (fields: readonly string[]): string[] =>
  fields.filter((_, at) => !REPLACED.has(fields[at - (at % 2)] ?? ''))
