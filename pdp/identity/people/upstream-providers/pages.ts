/** The pages and messages about other providers. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill, fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import type { Words } from '../../html/words/words.ts'
import { PATHS } from '../../oauth/paths.ts'
import type { StatusName } from '../../oauth/status.ts'
import { alertOf, hidden, shown } from '../account/page-parts.ts'
import type { Target } from '../sign-in/sign-in.ts'
import { type LoginProblem, outcomeOf } from '../sign-in/sign-in-pages.ts'
import type { UpstreamPerson } from './client.ts'

export type Problem = Exclude<keyof Words['upstream']['problems'], 'title'>
const OUTCOMES: { readonly [problem in Problem]?: StatusName } = {
  unreachable: 'unavailable',
  domain: 'forbidden',
  notMember: 'forbidden',
  blocked: 'forbidden',
}

/** `provider`: the provider's name. `target`: where the person wanted to go, and can begin again. */
export function problemPage(
  frame: Frame,
  problem: Problem,
  { provider = '', target }: { readonly provider?: string; readonly target?: Target } = {},
): View {
  const ofLinks = problem === 'last' || problem === 'taken' || problem === 'otherPerson'
  const to = ofLinks ? { path: PATHS.accountProviders } : (target ?? { path: PATHS.account })
  return shown(
    frame,
    frame.words.upstream.problems.title,
    html`${alertOf(fillText(frame.words.upstream.problems[problem], { provider }))}${again(frame, to)}`,
    OUTCOMES[problem] ?? 'invalid',
  )
}

/** A link to the page at which the person began; it offers all ways to sign in. */
function again({ mount, words }: Frame, target: Target): Html {
  const path = 'path' in target ? target.path : `${PATHS.interaction}/${target.interaction}`
  return html`<p><a href="${mount}${path}">${words.upstream.again}</a></p>`
}

/** The buttons. Each provider has its own form, so that they work without a script. */
export function providerButtons(
  frame: Frame,
  offered: readonly { readonly id: string; readonly name: string }[],
  fields: { readonly [name: string]: string },
  text: (words: Words) => string,
): Html {
  if (offered.length === 0) return EMPTY
  const path = `${frame.mount}${PATHS.accountProviders}`
  const forms = offered.map(
    ({
      id,
      name,
    }) => html`<form method="post" action="${path}" data-step="provider" class="other">${hidden({ provider: id, ...fields })}
<button type="submit" class="plain">${fillText(text(frame.words), { provider: name })}</button></form>`,
  )
  return html`${forms}`
}

export const nameOf = (frame: Frame, { email, name }: Pick<UpstreamPerson, 'email' | 'name'>): string =>
  email ?? name ?? frame.words.upstream.withoutName

/** Asks an unlinked person to prove an account here: a provider's address is no proof. */
export function proofPage(
  frame: Frame,
  view: {
    readonly provider: string
    readonly person: UpstreamPerson
    readonly target: Target
    readonly email: string
    readonly problem: LoginProblem | null
  },
): View {
  const { upstream, signIn, common } = frame.words
  const { provider, person, target, email, problem } = view
  const described = problem === null ? EMPTY : html` aria-invalid="true" aria-describedby="problem"`
  const text = problem === null ? null : signIn[problem === 'tooMany' || problem === 'busy' ? problem : 'wrong']
  const known = fill(upstream.proofKnown, { provider: strong(provider), person: strong(nameOf(frame, person)) })
  return shown(
    frame,
    upstream.proofTitle,
    html`<p>${known} ${upstream.proofNotYou}</p><p>${upstream.proofHow}</p>${alertOf(text)}
<form method="post" data-step="login">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" autocomplete="username" maxlength="254" required value="${email}"${described}>
<label for="password">${signIn.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required data-show="${common.showPassword}">
<button type="submit" name="action" value="login">${upstream.proofConnect}</button>
</form>
<p><a href="${frame.mount}${PATHS.accountForgotten}?ui_locales=${frame.words.lang}">${signIn.forgotten}</a></p>${again(frame, target)}`,
    outcomeOf(problem),
    'script',
  )
}
