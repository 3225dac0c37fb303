/** What is different between two texts, line by line. */
import { type Html, html } from '../../shared/base/html.ts'

export type DiffLine = { readonly sign: '+' | '−' | ' '; readonly text: string }

/** Cells of the table that finds the longest common part; larger texts are all removed and all added between their ends. */
const CELLS_MAX = 1_000_000
/** Equal lines that are shown around a difference. */
const AROUND = 3
const SHOWN_MAX = 400

export function diffOf(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const same = (text: string): DiffLine => ({ sign: ' ', text })
  return [
    ...a.slice(0, start).map(same),
    ...between(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]
}

const linesOf = (text: string): readonly string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

/** By the longest common subsequence. */
function between(a: readonly string[], b: readonly string[]): readonly DiffLine[] {
  const width = b.length + 1
  const removed = (text: string): DiffLine => ({ sign: '−', text })
  const added = (text: string): DiffLine => ({ sign: '+', text })
  if ((a.length + 1) * width > CELLS_MAX) return [...a.map(removed), ...b.map(added)]
  const lengths = new Uint16Array((a.length + 1) * width)
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]]
    if (left !== undefined && left === right) {
      lines.push({ sign: ' ', text: left })
      i += 1
      j += 1
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(left))
      i += 1
    } else {
      lines.push(added(right ?? ''))
      j += 1
    }
  }
  return lines
}

/** Types of a model whose declarations differ, in the order of the texts. */
export function changedTypes(before: string, after: string): readonly string[] {
  const changed = new Set<string>()
  let type = ''
  for (const line of diffOf(before, after)) {
    type = /^type\s+(\S+)/.exec(line.text)?.[1] ?? type
    if (isDifferent(line) && type !== '') changed.add(type)
  }
  return [...changed]
}

/** The differences with a few lines around each; the sign says what the colour says. */
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
