/** A tagged template for HTML. It escapes each interpolated value, unless the value is HTML of this template. */

const ENTITIES: { readonly [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeText = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

type Value = string | Html | readonly Html[]

/** The private field makes the type nominal: only the template can produce HTML. */
export class Html {
  readonly #text: string
  private constructor(text: string) {
    this.#text = text
  }
  static fromTemplate(parts: TemplateStringsArray, values: readonly Value[]): Html {
    return new Html(parts.map((part, index) => part + render(values[index] ?? '')).join(''))
  }
  toString(): string {
    return this.#text
  }
}

/** Quote every attribute: `<input value="${email}">`. A space in the value would end an unquoted one. */
export const html = (parts: TemplateStringsArray, ...values: readonly Value[]): Html => Html.fromTemplate(parts, values)

export const EMPTY: Html = html``

/** The items, with commas between them. */
export const joined = (items: readonly Html[]): Html =>
  html`${items.map((item, i) => html`${i === 0 ? EMPTY : ', '}${item}`)}`

function render(value: Value): string {
  if (typeof value === 'string') return escapeText(value)
  return value instanceof Html ? value.toString() : value.map(render).join('')
}

const CHARACTERS: { readonly [entity: string]: string } = Object.fromEntries(
  Object.entries(ENTITIES).map(([character, entity]) => [entity, character]),
)
/** Undoes the escaping of this template. */
export const unescapeHtml = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => CHARACTERS[entity] ?? '')
