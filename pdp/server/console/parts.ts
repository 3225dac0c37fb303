/** The parts of screens: names from outside with invisible characters made visible, fields, and links that keep the state. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { codePoint, INVISIBLE, visible } from '../../shared/base/invisible.ts'

/** A name that somebody else chose: invisible characters are shown as code points, and `bdi` keeps its direction from the text around. */
export const name = (text: string): Html =>
  html`<bdi class="name">${text.split(BEFORE_SUBJECT).map((part, i) => html`${i === 0 ? EMPTY : html`<wbr>`}${marked(part)}`)}</bdi>`

/** A sentence that contains such names: it is shortened like a name, and not monospaced. */
export const words = (text: string): Html => html`<bdi class="name words">${marked(text)}</bdi>`

/** A name that people gave to somebody or something: not monospaced as ids are. */
export const called = (text: string): Html => html`<bdi class="called">${marked(text)}</bdi>`

/** A relationship that is too long for one line breaks before its subject. */
const BEFORE_SUBJECT = /(?<=#[^#@]*@)/

/** A heading that contains such names. */
export const heading = (text: string): Html => html`<h1><bdi>${marked(text)}</bdi></h1>`

function marked(text: string): readonly Html[] {
  const pieces: Html[] = []
  let at = 0
  for (const { index, 0: found } of text.matchAll(INVISIBLE)) {
    pieces.push(html`${text.slice(at, index)}<span class="hidden-character">${codePoint(found)}</span>`)
    at = index + found.length
  }
  return [...pieces, html`${text.slice(at)}`]
}

export const link = (to: string, text: string | Html): Html => html`<a href="${to}">${text}</a>`

/** A URL of the console. Parameters without a value are left out, so that equal states have equal URLs. */
export function address(path: string, parameters: { readonly [name: string]: string | null }): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parameters)) if (value !== null && value !== '') query.set(key, value)
  const text = query.toString()
  return `/console${path === '' ? '' : `/${path}`}${text === '' ? '' : `?${text}`}`
}

export type Field = {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly hint?: string | Html
  readonly required?: true
  /** Suggested values; others are possible. */
  readonly among?: readonly string[]
  /** A list of suggestions for the typed text, if scripts run. */
  readonly suggest?: 'subject' | 'resource' | 'person'
  /** The only values that are possible. */
  readonly options?: readonly (readonly [value: string, text: string])[]
  readonly lines?: number
  /** The URL at which the editor has a long text checked. */
  readonly checkedAt?: string
  readonly type?: 'text' | 'datetime-local'
}

/** An input for text, or a choice if `options` are given. */
export function field(of: Field): Html {
  const { name: id, label, hint } = of
  const described = hint === undefined ? EMPTY : html` aria-describedby="${id}-hint"`
  const note = hint === undefined ? EMPTY : html`<small id="${id}-hint">${hint}</small>`
  return html`<div class="field"><label for="${id}">${label}</label>${control(of, described)}${note}</div>`
}

function control(of: Field, described: Html): Html {
  const { name: id, value, required, among = [], options, lines, checkedAt, suggest, type = 'text' } = of
  const must = required === true ? html` required` : EMPTY
  if (options !== undefined) {
    const items = options.map(
      ([key, text]) => html`<option value="${key}"${key === value ? html` selected` : EMPTY}>${visible(text)}</option>`,
    )
    return html`<select id="${id}" name="${id}"${described}>${items}</select>`
  }
  if (lines !== undefined) {
    const checked = checkedAt === undefined ? EMPTY : html` data-problems="${checkedAt}"`
    return html`<textarea id="${id}" name="${id}" rows="${String(lines)}" spellcheck="false" autocomplete="off"${checked}${must}${described}>
${value}</textarea>`
  }
  const items = among.map((item) => html`<option value="${item}"></option>`)
  const isListed = items.length > 0 || suggest !== undefined
  const grows = suggest === undefined ? EMPTY : html` data-suggest="${suggest}"`
  const list = isListed ? html` list="${id}-list"${grows}` : EMPTY
  const suggestions = isListed ? html`<datalist id="${id}-list">${items}</datalist>` : EMPTY
  return html`<input id="${id}" name="${id}" type="${type}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false"${list}${must}${described}>${suggestions}`
}

export const hidden = (name: string, value: string): Html =>
  value === '' ? EMPTY : html`<input type="hidden" name="${name}" value="${value}">`

/** Date and time in UTC; the element also has the exact instant. */
export function instant(ms: number): Html {
  const iso = new Date(ms).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`
}

/** Allowed or denied, as a word and a sign; the colour only repeats it. */
export const verdict = (allowed: boolean): Html =>
  allowed ? html`<span class="allowed">✓ allowed</span>` : html`<span class="denied">✗ denied</span>`

/** A text with a button to copy it. Without scripts, people select it. */
export const copyable = (title: string, text: string): Html =>
  html`<figure class="copy"><figcaption>${title}</figcaption><pre tabindex="0" aria-label="${title}"><code>${text}</code></pre></figure>`

export const alert = (text: string | Html): Html => html`<p role="alert">${told(text)}</p>`
export const status = (text: string | Html): Html => html`<p role="status">${told(text)}</p>`

/** A sentence may quote a name that somebody else chose, so invisible characters are marked. */
const told = (text: string | Html): Html => (typeof text === 'string' ? html`<bdi>${marked(text)}</bdi>` : text)

/** The issues of a form, each with its place and, if known, the line of text there. */
export function problems(
  message: string,
  issues: readonly { readonly place: string; readonly message: string; readonly line?: string | undefined }[],
): Html {
  if (issues.length === 0) return alert(message)
  const items = issues.map(
    ({ place, message: text, line }) =>
      html`<li>${place === '' ? EMPTY : html`<code>${marked(place)}</code> `}${told(text)}${line === undefined ? EMPTY : html`<pre tabindex="0">${marked(line)}</pre>`}</li>`,
  )
  // If the message repeats its only issue, the list is left out.
  const [{ message: only } = { message: '' }] = issues
  if (issues.length === 1 && message.endsWith(only)) return alert(message)
  return html`<div role="alert"><p>${told(message)}</p><ul>${items}</ul></div>`
}

/** A CSV file (RFC 4180). A cell that a spreadsheet would evaluate as a formula gets an apostrophe first. */
export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string): string => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}
