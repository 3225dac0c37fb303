/** Writes what a command measured into a page, between two marks that name the command. */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'

export type Cell = string | number

export const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [head, head.map((_, at) => (at === 0 ? '---' : '---:')), ...rows].map((row) => `|${row.join('|')}|`).join('\n')

/** Of whatever was running when it was asked. */
export function machine(): string {
  const cores = availableParallelism()
  const [busy = 0] = loadavg()
  const loaded =
    busy > cores / 2 ? `loaded (${busy.toFixed(1)} processes waited or ran before)` : 'with nothing else to do'
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, Node ${process.version}, ${cores} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${loaded}`
}

/** Throws when the page does not have the two marks. */
export function writeBlock(page: string, command: string, content: string): void {
  const path = new URL(`../../../${page}`, import.meta.url)
  const mark = `<!-- ${command} -->`
  const [before, old, after, ...more] = readFileSync(path, 'utf8').split(mark)
  if (before === undefined || old === undefined || after === undefined || more.length > 0)
    throw new Error(`${page} does not have ${mark} twice`)
  writeFileSync(path, `${before}${mark}\n${content.trim()}\n${mark}${after}`)
}

export const writePicture = (name: string, svg: string): void =>
  writeFileSync(new URL(`../../../docs/pictures/${name}.svg`, import.meta.url), svg)
