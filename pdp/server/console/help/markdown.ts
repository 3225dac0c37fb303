/** Text in Markdown as HTML of our own template: the library only parses, and HTML in the text is shown as text. */
import { lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'

/** `title`: the first heading. `sections`: the headings of the second level. */
export type Page = { readonly title: string; readonly sections: readonly Section[]; readonly body: Html }
type Section = { readonly id: string; readonly title: string }
/** The URL for a link's or a picture's target in the text; null: it leads nowhere, so only its text is shown. */
export type Resolve = (href: string) => string | null

export function parsePage(text: string, resolve: Resolve): Page {
  const tokens = known(lexer(text))
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === 'heading')
  const [first] = headings.filter(({ depth }) => depth === 1)
  return {
    title: first === undefined ? '' : plain(first),
    sections: headings.filter(({ depth }) => depth === 2).map((token) => ({ id: idOf(token), title: plain(token) })),
    body: all(
      tokens.filter((token) => token !== first),
      resolve,
    ),
  }
}

/** Without extensions, the library makes no others. */
const known = (tokens: readonly Token[] = []): readonly MarkedToken[] => tokens as readonly MarkedToken[]

const all = (tokens: readonly Token[], resolve: Resolve): Html =>
  html`${known(tokens).map((token) => html`${piece(token, resolve)}`)}`

function piece(token: MarkedToken, resolve: Resolve): Html | string {
  const inner = (): Html => all(partsOf(token) ?? [], resolve)
  switch (token.type) {
    case 'heading':
      return heading(token, inner())
    case 'paragraph':
      return html`<p>${inner()}</p>`
    case 'strong':
      return html`<strong>${inner()}</strong>`
    case 'em':
      return html`<em>${inner()}</em>`
    case 'codespan':
      return html`<code>${token.text}</code>`
    case 'code':
      return html`<pre tabindex="0"><code>${token.text}</code></pre>`
    case 'blockquote':
      return html`<blockquote>${inner()}</blockquote>`
    case 'list':
      return list(token, resolve)
    case 'table':
      return table(token, resolve)
    case 'link': {
      const to = resolve(token.href)
      return to === null ? inner() : html`<a href="${to}">${inner()}</a>`
    }
    case 'image': {
      const from = resolve(token.href)
      return from === null ? token.text : html`<img src="${from}" alt="${token.text}">`
    }
    case 'html':
      return token.raw.startsWith('<!--') ? EMPTY : token.raw
    case 'br':
      return html`<br>`
    case 'hr':
      return html`<hr>`
    case 'space':
    case 'def':
      return EMPTY
    default:
      return partsOf(token) === undefined ? textOf(token) : inner()
  }
}

const heading = (token: Tokens.Heading, inner: Html): Html =>
  token.depth < 3 ? html`<h2 id="${idOf(token)}">${inner}</h2>` : html`<h3 id="${idOf(token)}">${inner}</h3>`

function list({ ordered, items }: Tokens.List, resolve: Resolve): Html {
  const shown = items.map(({ tokens }) => html`<li>${all(tokens, resolve)}</li>`)
  return ordered ? html`<ol>${shown}</ol>` : html`<ul>${shown}</ul>`
}

/** As the other tables of the console, so that a phone shows each row as a card whose cells say what they are. */
function table({ header, rows }: Tokens.Table, resolve: Resolve): Html {
  const titles = header.map(plain)
  const heads = header.map(({ tokens }) =>
    tokens.length === 0 ? html`<td></td>` : html`<th scope="col">${all(tokens, resolve)}</th>`,
  )
  const body = rows.map(
    (cells) =>
      html`<tr>${cells.map(({ tokens }, i) => html`<td data-title="${titles[i] ?? ''}">${all(tokens, resolve)}</td>`)}</tr>`,
  )
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${titles.join(', ')}"><table><thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table></div>`
}

/** The anchor of a heading, as code hosts make it. */
const idOf = (token: Tokens.Heading): string =>
  plain(token)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const partsOf = (token: MarkedToken): readonly Token[] | undefined => ('tokens' in token ? token.tokens : undefined)
const textOf = (token: MarkedToken): string => ('text' in token ? token.text : '')

const plain = ({ tokens }: { readonly tokens: readonly Token[] }): string =>
  known(tokens)
    .map((token): string => (partsOf(token) === undefined ? textOf(token) : plain({ tokens: partsOf(token) ?? [] })))
    .join('')
