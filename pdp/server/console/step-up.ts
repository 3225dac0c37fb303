/** Writes need a recent sign-in, with the second factor of people who have one (the idea of RFC 9470, for our own pages). */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { keptForm, signInBeside } from './kept-form.ts'
import { link, status } from './parts.ts'
import type { ConsoleVisit, View } from './visit.ts'

const again = (to: string): string => `/console/sign-in?${new URLSearchParams({ again: '1', to })}`

/** Shown instead of the buttons that write, while the sign-in is too old. */
export const freshness = (visit: ConsoleVisit, to: string): Html =>
  visit.isFresh
    ? EMPTY
    : status(
        html`To write, ${link(again(to), 'sign in once more')}: the last sign-in is not recent, or lacks your second factor.`,
      )

/** The page that asks for a sign-in; null when the person may continue. */
export function mustSignInAgain(visit: ConsoleVisit, to: string): Extract<View, { body: Html }> | null {
  if (visit.isFresh) return null
  const body = html`<p>Nothing was written. Writing needs a sign-in of the last 15 minutes, with your second factor if you have one.</p>
${signInBeside(again(to))}${keptForm(visit.sent, visit.csrf)}`
  return { title: 'Sign in once more', body, status: 403 }
}
