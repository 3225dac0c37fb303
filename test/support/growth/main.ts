/** Measures the rows of the table at the path in its arguments, each before the next, and prints a line for each. */
import { type Growth, growthOf } from './growth.ts'

const [, , path = ''] = process.argv
const { ROWS }: { readonly ROWS: readonly Growth[] } = await import(path)
for (const row of ROWS) {
  console.log(JSON.stringify({ begins: row.name }))
  console.log(JSON.stringify(await growthOf(row)))
}
// What rows have opened stays open.
process.exit()
