/** Findings that the operator accepts: a comment on the line, or on those right above it, names the code and the reason. */
import { type Place, type Source, UnreadableError } from '../read/source.ts'
import { FINDING_CODES, type Finding, type FindingCode } from './finding.ts'

export type Accepted = Finding & { readonly reason: string }
export type Findings = { readonly findings: readonly Finding[]; readonly accepted: readonly Accepted[] }
/** `place`: of what it is about. `comment`: the line of its own. */
type Acceptance = {
  readonly place: Place
  readonly comment: number
  readonly code: FindingCode
  readonly reason: string
}

const DIRECTIVE = /#[ \t]*portcullis:(.*)$/i
const FORM = '# portcullis: accept CODE: the reason'
const REASON_CHARS_MIN = 10

/**
 * One comment accepts one finding of its code at its line; where there are more findings than comments, none is accepted. Throws
 * UnreadableError for a comment that is malformed, has no reason, or accepts what is not there.
 */
export function setAccepted(findings: readonly Finding[], sources: readonly Source[]): Findings {
  const acceptances = sources.flatMap(acceptancesOf)
  const left: Finding[] = []
  const accepted: Accepted[] = []
  const used = new Set<Acceptance>()
  for (const [, alike] of Map.groupBy(findings, keyOf)) {
    const own = acceptances.filter(({ place, code }) => alike.some((one) => keyOf({ ...place, code }) === keyOf(one)))
    for (const one of own.slice(0, alike.length)) used.add(one)
    if (own.length < alike.length) left.push(...alike)
    else accepted.push(...alike.map((one, at) => ({ ...one, reason: own[at]?.reason ?? '' })))
  }
  const idle = acceptances.find((one) => !used.has(one))
  if (idle !== undefined)
    throw new UnreadableError(
      `${idle.place.file}:${idle.comment}: the comment accepts ${idle.code}, which is not found at line ${idle.place.line}: remove the comment`,
    )
  return { findings: left, accepted }
}

const keyOf = ({ file, line, code }: Place & { readonly code: FindingCode }): string =>
  JSON.stringify([file, line, code])

function acceptancesOf({ file, text }: Source): readonly Acceptance[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    const said = DIRECTIVE.exec(line)?.[1]
    if (said === undefined) return []
    return [
      { place: { file, line: subjectOf(lines, at) + 1 }, comment: at + 1, ...readDirective(said, `${file}:${at + 1}`) },
    ]
  })
}

/** The index of the line that the comment is about: its own, or the next that is more than a comment. */
function subjectOf(lines: readonly string[], at: number): number {
  if (!isComment(lines[at])) return at
  const below = lines.findIndex((line, index) => index > at && !isComment(line))
  return below < 0 ? at : below
}

const isComment = (line: string | undefined): boolean => line?.trimStart().startsWith('#') === true

function readDirective(said: string, place: string): Pick<Acceptance, 'code' | 'reason'> {
  const [, code = '', reason = ''] = /^\s*accept\s+([\w-]+)\s*(?:[:\u2013\u2014-]\s*)?(.*?)\s*$/.exec(said) ?? []
  if (code === '') throw new UnreadableError(`${place}: the comment is not of the form ${FORM}`)
  if (!isCode(code))
    throw new UnreadableError(`${place}: ${code} is not one of ${Object.keys(FINDING_CODES).join(', ')}`)
  if (reason.length < REASON_CHARS_MIN)
    throw new UnreadableError(
      `${place}: the comment accepts ${code} and does not say why: ${FORM}, in ${REASON_CHARS_MIN} characters at least`,
    )
  return { code, reason }
}

const isCode = (text: string): text is FindingCode => Object.hasOwn(FINDING_CODES, text)
