/** Draws boxes and arrows as SVG on the server: no script is needed, and the text can be read, searched and tested. */
import { graphlib, layout } from '@dagrejs/dagre'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { visible } from '../../../shared/base/invisible.ts'

/** Widths in pixels, for the fonts of the stylesheet. */
const LETTER_WIDTH = 8.6
const SMALL_LETTER_WIDTH = 7.4
/** A wider picture is scrolled on a narrow screen, because its letters would become too small. */
const SHRUNK_MAX = 704
const LINE_HEIGHT = 18
const PADDING = 24
/** A longer text ends with `…`; the title has all of it. */
const LETTERS_MAX = 34

export type Box = {
  readonly id: string
  readonly text: string
  /** A text above the name, in small letters. */
  readonly kind?: string
  readonly to?: string
}
export type Arrow = {
  readonly from: string
  readonly to: string
  readonly title: string
  readonly on?: string
  readonly below?: readonly string[]
  /** `holds` and `missing` have a colour; a missing arrow is dashed. */
  readonly state?: 'holds' | 'missing'
}
type Drawing = {
  /** An id that is unique on the page. */
  readonly id: string
  readonly title: string
  readonly boxes: readonly Box[]
  readonly arrows: readonly Arrow[]
  /** From left to right, or from top to bottom. */
  readonly direction: 'LR' | 'TB'
}
type At = { readonly x?: number; readonly y?: number; readonly width?: number; readonly height?: number }

/** The drawing twice: wide screens show it from left to right, phones from top to bottom. */
export function drawings({ label, ...of }: Omit<Drawing, 'direction'> & { readonly label: string }): Html {
  return html`<div class="scroll across" role="region" tabindex="0" aria-label="${label}">${drawing({ ...of, direction: 'LR' })}</div>
<div class="scroll down" role="region" tabindex="0" aria-label="${label}">${drawing({ ...of, id: `${of.id}-down`, direction: 'TB' })}</div>`
}

/** Draws a graph. Ids of boxes differ, and no arrow leads from a box to itself. */
function drawing({ id, title, boxes, arrows, direction }: Drawing): Html {
  const graph = new graphlib.Graph({ multigraph: true })
  const isLabelled = arrows.some(({ on, below }) => on !== undefined || below !== undefined)
  const linesBelow = Math.max(0, ...arrows.map(({ below = [] }) => below.length))
  graph.setGraph({
    rankdir: direction,
    nodesep: 24,
    ranksep: isLabelled ? 40 : 90,
    marginx: PADDING,
    marginy: PADDING,
  })
  for (const { id: box, text, kind } of boxes)
    graph.setNode(box, {
      width: Math.max(widthOf(text, LETTER_WIDTH), widthOf(kind, SMALL_LETTER_WIDTH)) + PADDING,
      height: LINE_HEIGHT * (kind === undefined ? 2 : 2.75),
    })
  for (const [i, { from, to, on, below }] of arrows.entries())
    graph.setEdge(
      from,
      to,
      {
        width: Math.max(...[on, ...(below ?? [])].map((text) => widthOf(text, SMALL_LETTER_WIDTH))),
        height: isLabelled ? LINE_HEIGHT * (1.5 + linesBelow) : 0,
        labelpos: 'c',
      },
      String(i),
    )
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  const lines = arrows.map((arrow, i) =>
    line(id, arrow, graph.edge(arrow.from, arrow.to, String(i)) as At & { readonly points?: readonly At[] }),
  )
  const tips = ['', 'holds', 'missing'].map(
    (state) =>
      html`<marker id="${id}-tip${state}" class="tip ${state}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z"></path></marker>`,
  )
  return html`<svg class="${width > SHRUNK_MAX ? 'wide' : ''}" viewBox="0 0 ${round(width)} ${round(height)}" width="${round(width)}" height="${round(height)}" role="${boxes.some(({ to }) => to !== undefined) ? 'group' : 'img'}" aria-labelledby="${id}-title">
<title id="${id}-title">${title}</title><defs>${tips}</defs>
${lines.map(([path]) => path)}${lines.map(([, labels]) => labels)}${boxes.map((box) => boxOf(box, graph.node(box.id)))}</svg>`
}

const short = (text: string): string => {
  const letters = [...visible(text)]
  return letters.length <= LETTERS_MAX ? letters.join('') : `${letters.slice(0, LETTERS_MAX - 1).join('')}…`
}
const widthOf = (text: string | undefined, letter: number): number =>
  text === undefined ? 0 : [...short(text)].length * letter
const round = (value: number): string => String(Math.round(value))

function line(
  id: string,
  { title, on, below, state }: Arrow,
  { points = [], x = 0, y = 0 }: At & { readonly points?: readonly At[] },
): readonly [path: Html, labels: Html] {
  const path = points.map((at, i) => `${i === 0 ? 'M' : 'L'}${round(at.x ?? 0)} ${round(at.y ?? 0)}`).join('')
  const label = (text: string | undefined, name: string, dy: number): Html =>
    text === undefined
      ? EMPTY
      : html`<rect class="behind" x="${round(x - widthOf(text, SMALL_LETTER_WIDTH) / 2)}" y="${round(y + dy - 11)}" width="${round(widthOf(text, SMALL_LETTER_WIDTH))}" height="14"></rect><text class="${name}" x="${round(x)}" y="${round(y + dy)}" text-anchor="middle">${short(text)}</text>`
  const group = (content: Html): Html => html`<g class="${state ?? ''}"><title>${visible(title)}</title>${content}</g>`
  return [
    group(html`<path class="edge" d="${path}" marker-end="url(#${id}-tip${state ?? ''})"></path>`),
    group(
      html`${label(on, 'on-arrow', -6)}${(below ?? []).map((text, i) => label(text, 'below-arrow', (i + 1) * (LINE_HEIGHT - 2)))}`,
    ),
  ]
}

function boxOf({ text, kind, to }: Box, { x = 0, y = 0, width = 0, height = 0 }: At): Html {
  const middle = kind === undefined ? 0 : 9
  const above =
    kind === undefined
      ? EMPTY
      : html`<text class="kind" x="${round(x)}" y="${round(y - 10)}" text-anchor="middle" dominant-baseline="central">${short(kind)}</text>`
  const body = html`<title>${visible(kind === undefined ? text : `${kind}:${text}`)}</title><rect x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}" rx="6"></rect>
${above}<text x="${round(x)}" y="${round(y + middle)}" text-anchor="middle" dominant-baseline="central">${short(text)}</text>`
  return to === undefined ? html`<g>${body}</g>` : html`<a href="${to}">${body}</a>`
}
