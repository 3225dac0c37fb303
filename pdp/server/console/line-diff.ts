/** The differences between two texts, line by line. */
import { diffArrays } from 'diff'
import { type Html, html } from '../../shared/base/html.ts'

export type DiffLine = { readonly sign: '+' | '−' | ' '; readonly text: string }

/** How many lines may differ; if more do, all lines are shown as removed and added. */
const EDITS_MAX = 1_000
/** How many equal lines are shown around a difference. */
const AROUND = 3
const SHOWN_MAX = 400

export function diffOf(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  const changes = diffArrays(a, b, { maxEditLength: EDITS_MAX }) ?? [
    { removed: true, added: false, value: a },
    { removed: false, added: true, value: b },
  ]
  return changes.flatMap(({ removed, added, value }) =>
    value.map((text): DiffLine => ({ sign: removed ? '−' : added ? '+' : ' ', text })),
  )
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

/** Types of a model whose declarations differ, in the order of the texts. It reads models in JSON, in the form that imports write. */
export function changedTypes(before: string, after: string): readonly string[] {
  const changed = new Set<string>()
  let type = ''
  for (const line of diffOf(before, after)) {
    type = /^(?:type\s+| {6}"type": ")([^\s"]+)/.exec(line.text)?.[1] ?? type
    if (isDifferent(line) && type !== '') changed.add(type)
  }
  return [...changed]
}

/** The differences with a few lines around each. Signs say the same as colours. */
export function shownDiff(lines: readonly DiffLine[], title: string): Html {
  const isNear = (at: number): boolean => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(isDifferent)
  const shown: Html[] = []
  let isCut = false
  for (const [at, { sign, text }] of lines.entries()) {
    if (!isNear(at)) {
      isCut = true
      continue
    }
    if (shown.length === SHOWN_MAX) break
    if (isCut) shown.push(html`<span class="note">…</span>\n`)
    isCut = false
    const line = `${sign} ${text}\n`
    shown.push(sign === '+' ? html`<ins>${line}</ins>` : sign === '−' ? html`<del>${line}</del>` : html`${line}`)
  }
  if (shown.length === 0) return html`<p class="note">The text is the same.</p>`
  const more =
    shown.length === SHOWN_MAX ? html`<p class="note">The first ${String(SHOWN_MAX)} lines are shown.</p>` : html``
  return html`<pre tabindex="0" class="diff" aria-label="${title}"><code>${shown}</code></pre>${more}`
}

export const isDifferent = ({ sign }: DiffLine): boolean => sign !== ' '
