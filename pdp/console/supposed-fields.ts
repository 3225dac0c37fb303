/** The fields of a supposition, folded away until one of them is used. */
import { EMPTY, type Html, html } from '../process/pages/html.ts'
import { type Field, field } from './parts.ts'
import { isSupposed, type Supposed } from './question.ts'

/** `more`: fields of the one screen. */
export function supposedFields(supposed: Supposed, more: readonly Field[] = []): Html {
  const isUsed = isSupposed(supposed) || more.some(({ value }) => value !== '')
  return html`<details${isUsed ? html` open` : EMPTY}><summary>What if, at another time, with a context</summary>
<div class="fields">
${field({ name: 'with', label: 'With these relationships', value: supposed.with, lines: 2, hint: 'One on each line: doc:1#viewer@user:alice. They count in this question only.' })}
${field({ name: 'without', label: 'Without these relationships', value: supposed.without, lines: 2 })}
${field({ name: 'as_of', label: 'As of (UTC)', value: supposed.asOf, hint: '2030-01-31T12:00. Read from the log of changes.' })}
${field({ name: 'context', label: 'Context of conditions', value: supposed.context, lines: 2, hint: 'A JSON object.' })}
${more.map(field)}</div></details>`
}
