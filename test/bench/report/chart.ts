/** Charts as SVG: bars for what is compared, lines for what grows. Readable in light and dark, with a text for readers of neither. */

/** `isDrawn` false: words alone. */
export type Bar = {
  readonly name: string
  readonly value: number
  readonly shown: string
  readonly ours: boolean
  readonly isDrawn?: boolean
}
export type Line = { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }
export type Titled = { readonly title: string; readonly description: string }

const WIDTH = 760
const STYLE = `
    .panel { fill: #f6f8fa; stroke: #d1d9e0 }
    .title { font: 600 20px system-ui, sans-serif; fill: #1f2328 }
    .name { font: 16px system-ui, sans-serif; fill: #1f2328 }
    .note { font: 14px system-ui, sans-serif; fill: #59636e }
    .grid { stroke: #d1d9e0; stroke-width: 1 }
    .bar { fill: #8c959f }
    .ours { fill: #1d4ed8 }
    .line { fill: none; stroke-width: 2.5 }
    .c0 { stroke: #1d4ed8 } .c1 { stroke: #b35900 } .c2 { stroke: #1a7f37 }
    .f0 { fill: #1d4ed8 } .f1 { fill: #b35900 } .f2 { fill: #1a7f37 }
    @media (prefers-color-scheme: dark) {
      .panel { fill: #151b23; stroke: #3d444d }
      .title, .name { fill: #f0f6fc }
      .note { fill: #b4bcc5 }
      .grid { stroke: #3d444d }
      .bar { fill: #768390 }
      .ours { fill: #78a9ff }
      .c0 { stroke: #78a9ff } .c1 { stroke: #f0a35e } .c2 { stroke: #56d364 }
      .f0 { fill: #78a9ff } .f1 { fill: #f0a35e } .f2 { fill: #56d364 }
    }`

/** Longest first is the caller's choice; all start at 0, and none is shortened. */
export function barChart(bars: readonly Bar[], { note, ...titled }: Titled & { readonly note: string }): string {
  const drawn = bars.filter(({ isDrawn = true }) => isDrawn)
  const most = Math.max(...drawn.map(({ value }) => value))
  const [left, room] = [300, WIDTH - 300 - 170]
  const rows = bars.map(({ name, value, shown, ours, isDrawn = true }, at) => {
    const y = 76 + at * 30
    const width = isDrawn ? Math.max(2, (value / most) * room).toFixed(1) : '0'
    return `  <text class="name" x="${left - 12}" y="${y + 16}" text-anchor="end">${escaped(name)}</text>
  <rect class="${ours ? 'ours' : 'bar'}" x="${left}" y="${y}" width="${width}" height="20" rx="3"/>
  <text class="note" x="${(left + Number(width) + 8).toFixed(1)}" y="${y + 15}">${escaped(isDrawn ? shown : `${shown}: longer than this picture`)}</text>`
  })
  const below = `  <text class="note" x="24" y="60">${escaped(note)}</text>`
  return svg(titled, 76 + bars.length * 30 + 14, [below, ...rows].join('\n'))
}

/** Both axes logarithmic, since what grows does so by tens. */
export function lineChart(
  lines: readonly Line[],
  { title, description, x, y }: Titled & { readonly x: string; readonly y: string },
): string {
  const [left, top, width, height] = [84, 64, WIDTH - 84 - 30, 230]
  const points = lines.flatMap((line) => line.points).filter(([, value]) => value > 0)
  const across = scale(
    points.map(([at]) => at),
    [left, left + width],
  )
  const up = scale(
    points.map(([, at]) => at),
    [top + height, top],
  )
  const grid = [
    ...up.ticks.map((tick) => {
      const at = up.place(tick).toFixed(1)
      return `  <line class="grid" x1="${left}" x2="${left + width}" y1="${at}" y2="${at}"/>
  <text class="note" x="${left - 8}" y="${Number(at) + 5}" text-anchor="end">${power(tick)}</text>`
    }),
    ...across.ticks.map(
      (tick) =>
        `  <text class="note" x="${across.place(tick).toFixed(1)}" y="${top + height + 20}" text-anchor="middle">${power(tick)}</text>`,
    ),
  ]
  const drawn = lines.map(({ name, points: own }, at) => {
    const shown = own.filter(([, value]) => value > 0)
    const path = shown.map(([a, b]) => `${across.place(a).toFixed(1)},${up.place(b).toFixed(1)}`)
    const dots = path.map((place) => {
      const [cx, cy] = place.split(',')
      return `<circle class="f${at % 3}" cx="${cx}" cy="${cy}" r="3.5"/>`
    })
    const key = left + at * 215
    return `  <polyline class="line c${at % 3}" points="${path.join(' ')}"/>
  ${dots.join('')}
  <rect class="f${at % 3}" x="${key}" y="${top + height + 52}" width="14" height="14" rx="3"/>
  <text class="note" x="${key + 20}" y="${top + height + 64}">${escaped(name)}</text>`
  })
  const axes = `  <text class="note" x="${left}" y="${top - 10}">${escaped(y)}</text>
  <text class="note" x="${left + width}" y="${top + height + 40}" text-anchor="end">${escaped(x)}</text>`
  return svg({ title, description }, top + height + 84, [...grid, axes, ...drawn].join('\n'))
}

/** By powers of ten, at least one of them. */
function scale(values: readonly number[], [from, to]: readonly [number, number]) {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9)
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9))
  return {
    place: (value: number): number => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
    ticks: Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at)),
  }
}

const power = (value: number): string =>
  value >= 1 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(1)))
const escaped = (text: string): string => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`)

const svg = ({ title, description }: Titled, height: number, content: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title description">
  <title id="title">${escaped(title)}</title>
  <desc id="description">${escaped(description)}</desc>
  <style>${STYLE}
  </style>
  <rect class="panel" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
  <text class="title" x="24" y="38">${escaped(title)}</text>
${content}
</svg>
`
