/** The page that a person reads when a request is denied: what is missing and what to do, in place of a problem document. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { PROBLEM_TITLES } from '../../pdp/shared/base/problems.ts'
import type { Denial } from '../enforce/denial.ts'
import { type DenialAnswer, describeDenial } from '../enforce/denial-response.ts'
import { type Act, pageAnswer } from './pages.ts'

type Words = { readonly title: string; readonly text: string }

const WORDS: { readonly [code in ProblemCode]?: Words } = {
  token_missing: { title: 'You are not signed in', text: 'This page is for people who have signed in.' },
  token_invalid: {
    title: 'Your session has ended',
    text: 'The sign-in that this session belongs to is not valid any more.',
  },
  token_expired: { title: 'Your session has ended', text: 'It was not renewed in time.' },
  step_up_required: {
    title: 'Another sign-in is needed',
    text: 'This page needs a stronger or a more recent sign-in than yours.',
  },
  permission_denied: {
    title: 'You may not open this page',
    text: 'You are signed in, but you lack the permission for it.',
  },
  route_unknown: { title: 'There is no such page', text: 'The address may be misspelt, or the page was moved.' },
  method_unsupported: {
    title: 'This cannot be done here',
    text: 'The page exists, but it does not take this request.',
  },
  origin_refused: {
    title: 'This request was refused',
    text: 'It was sent by the page of another site, or your browser did not say by which. Open the page here and try again.',
  },
  busy: { title: 'Too much is going on', text: 'Too many requests are open. Try again in a moment.' },
  overloaded: { title: 'Too much is going on', text: 'Too many requests are open. Try again in a moment.' },
}
const UNDECIDED: Words = {
  title: 'This does not work at the moment',
  text: 'Whether you may open this page cannot be found out now. Try again in a moment.',
}
const SERVER_ERRORS = 500

/** `acts`: what the person can do about it. */
export function denialPage(
  { code, members, subject }: Pick<Denial, 'code' | 'members' | 'subject'>,
  about: { readonly requestId: string; readonly path: string; readonly acts: readonly Act[] },
): DenialAnswer {
  const { requestId, path, acts } = about
  const problem = describeDenial(code, members, { requestId, metadataUrl: null })
  const words = WORDS[code] ?? wordsFor(code, problem.status)
  const missing = missingOf(members)
  return pageAnswer(
    problem.status,
    {
      title: words.title,
      paragraphs: missing === null ? [words.text] : [words.text, missing],
      acts,
      about: [
        ...(subject === null ? [] : [['Signed in as', subject] as const]),
        ['Page', path],
        ['Reason', code],
        ['Request', requestId],
      ],
    },
    otherFields(problem.fields),
  )
}

const wordsFor = (code: ProblemCode, status: number): Words =>
  status >= SERVER_ERRORS ? UNDECIDED : { title: 'This did not work', text: `${PROBLEM_TITLES[code]}.` }

/** The missing thing, which the problem document names, too: nothing that only the log may hold. */
function missingOf({ entitlement, scope, detail }: Denial['members']): string | null {
  if (entitlement !== undefined) return `Your organization does not have: ${entitlement}.`
  if (scope !== undefined) return `Your sign-in does not include: ${scope}.`
  return detail === undefined ? null : `${detail}.`
}

const REPLACED = new Set(['content-type', 'content-length', 'cache-control'])

/** Challenges and the like, which hold for a page, too. */
const otherFields = (fields: readonly string[]): string[] =>
  fields.filter((_, at) => !REPLACED.has(fields[at - (at % 2)] ?? ''))
