/** The page for people who may do nothing here: it says what is missing and how to get it. */

import { MANAGEMENT_APP } from '../../identity/oauth/management-app.ts'
import { html } from '../../shared/base/html.ts'
import { shellWord } from './answer-texts.ts'
import { address, alert, link } from './parts.ts'
import type { ConsoleVisit, View } from './visit.ts'

export function noRights({ person, organization }: ConsoleVisit): View {
  const subject = shellWord(`user:${person.id}`)
  const where = shellWord(organization ?? 'ORGANIZATION')
  return {
    title: 'Nothing to see yet',
    body: html`${alert('You are signed in, and no role lets you look at anything here.')}
<p>Somebody who may grant roles can give you one in an organization and those below; without <code>-o</code> it would count in every organization:</p>
<pre tabindex="0"><code>portcullis role grant auditor ${subject} -o ${where} --app ${MANAGEMENT_APP}</code></pre>
<p>The roles are <code>auditor</code>, who reads; <code>editor</code>, who also writes relationships and entitlements; and <code>administrator</code>.</p>
<p>${link(address('', {}), 'Try again')}</p>`,
  }
}
