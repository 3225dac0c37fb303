/** Counts how each gateway compares with the data port, and prints it as a table. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Agreement, Compared } from './compare.ts'

const COLUMNS = ['same', 'otherwise', 'stricter', 'cleaned', 'looser'] as const satisfies readonly Agreement[]
const FOUND_MAX = 20

export class Tally {
  readonly #counts = new Map<string, Map<string, { [name in Agreement]: number }>>()
  readonly #found: string[] = []
  readonly #tellsDifferences: boolean

  /** `differences`: each answer that is not the same is printed. */
  constructor({ differences }: { readonly differences: boolean }) {
    this.#tellsDifferences = differences
  }

  /** `rows`: what was sent, such as the name of a file. */
  add(rows: string, way: string, { agreement, why }: Compared, what: string): void {
    const ways = this.#counts.get(rows) ?? new Map<string, { [name in Agreement]: number }>()
    this.#counts.set(rows, ways)
    const counts = ways.get(way) ?? { same: 0, otherwise: 0, stricter: 0, cleaned: 0, looser: 0 }
    ways.set(way, counts)
    counts[agreement] += 1
    if (agreement === 'looser') this.#found.push(`looser: ${way}: ${what}: ${why}`)
    else if (this.#tellsDifferences && agreement !== 'same') console.log(`${agreement}: ${way}: ${what}: ${why}`)
  }

  /** Requests that got no more than at the data port. */
  get held(): number {
    const all = [...this.#counts.values()].flatMap((ways) => [...ways.values()])
    return all.reduce((sum, { looser: _, ...held }) => sum + Object.values(held).reduce((all, one) => all + one, 0), 0)
  }

  get looser(): number {
    return this.#found.length
  }

  /** Each row: requests of a kind; each column: a gateway. */
  print(): void {
    for (const line of this.#found.slice(0, FOUND_MAX)) console.log(line)
    console.log('\nAgainst the data port: same / refused otherwise / stricter / cleaned before the question / looser')
    const table = tableOf(this.#ways(), this.#rows())
    const width = Math.max(...table.flat().map((cell) => cell.length))
    for (const row of table) console.log(row.map((cell) => cell.padEnd(width + 2)).join(''))
  }

  /** Puts the rows in the place of those of the same name in the table of a page. */
  write(path: string): void {
    const page = readFileSync(path, 'utf8')
    const [head = '', table = '', tail = ''] = page.split(MARK)
    const [ways = [], ...known] = table
      .trim()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('|---'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      )
    const rows = new Map(
      known.map(([name = '', ...cells]) => [name, new Map(cells.map((cell, at) => [ways[at + 1] ?? '', cell]))]),
    )
    for (const [name, cells] of this.#rows()) rows.set(name, new Map([...(rows.get(name) ?? []), ...cells]))
    const names = [...new Set([...ways.slice(1), ...this.#ways()])]
    const lines = tableOf(names, rows).map((cells) => `| ${cells.join(' | ')} |`)
    const rule = `|---|${names.map(() => '---|').join('')}`
    writeFileSync(path, [head, `\n${lines.toSpliced(1, 0, rule).join('\n')}\n`, tail].join(MARK))
  }

  #ways(): readonly string[] {
    return [...new Set([...this.#counts.values()].flatMap((counts) => [...counts.keys()]))]
  }

  #rows(): Rows {
    const cellOf = (counts: { readonly [name in Agreement]: number }): string =>
      COLUMNS.map((name) => counts[name]).join('/')
    return new Map(
      [...this.#counts].map(([name, ways]) => [name, new Map([...ways].map(([way, counts]) => [way, cellOf(counts)]))]),
    )
  }
}

type Rows = ReadonlyMap<string, ReadonlyMap<string, string>>
/** Around the table in the page. */
const MARK = '<!-- npm run test:doors -- --write -->'

const tableOf = (ways: readonly string[], rows: Rows): readonly (readonly string[])[] => [
  ['requests', ...ways],
  ...[...rows].map(([name, cells]) => [name, ...ways.map((way) => cells.get(way) ?? '-')]),
]
