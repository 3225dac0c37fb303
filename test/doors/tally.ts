/** Counts how each gateway compares with the data port, and prints it as a table. */
import type { Agreement, Compared } from './compare.ts'

const COLUMNS = ['same', 'otherwise', 'stricter', 'cleaned', 'looser'] as const satisfies readonly Agreement[]
const FOUND_MAX = 20

export class Tally {
  readonly #counts = new Map<string, Map<string, { [name in Agreement]: number }>>()
  readonly #found: string[] = []

  /** `rows`: what was sent, such as the name of a file. */
  add(rows: string, way: string, { agreement, why }: Compared, what: string): void {
    const ways = this.#counts.get(rows) ?? new Map<string, { [name in Agreement]: number }>()
    this.#counts.set(rows, ways)
    const counts = ways.get(way) ?? { same: 0, otherwise: 0, stricter: 0, cleaned: 0, looser: 0 }
    ways.set(way, counts)
    counts[agreement] += 1
    if (agreement === 'looser') this.#found.push(`looser: ${way}: ${what}: ${why}`)
    else if (process.argv.includes('--differences') && agreement !== 'same')
      console.log(`${agreement}: ${way}: ${what}: ${why}`)
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
    const ways = [...new Set([...this.#counts.values()].flatMap((counts) => [...counts.keys()]))]
    console.log(['requests'.padEnd(28), ...ways.map((way) => way.padEnd(20))].join(''))
    for (const [rows, counts] of this.#counts) {
      const cells = ways.map((way) => {
        const of = counts.get(way)
        return (of === undefined ? '-' : COLUMNS.map((name) => of[name]).join(' / ')).padEnd(20)
      })
      console.log([rows.padEnd(28), ...cells].join(''))
    }
  }
}
