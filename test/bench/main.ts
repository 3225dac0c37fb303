/** `npm run bench -- NAME`: prints figures, never a verdict. Ratios come from one run, since the machine is noisy. */
import { readdirSync } from 'node:fs'

const folder = new URL('./', import.meta.url)
/** A file, or `bench.ts` in a folder. */
const files = new Map(
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return [[entry.name, `${entry.name}/bench.ts`]]
    const isBench = entry.name.endsWith('.ts') && entry.name !== 'main.ts' && !entry.name.includes('-')
    return isBench ? [[entry.name.slice(0, -3), entry.name]] : []
  }),
)
const [name = ''] = process.argv.slice(2)
const file = files.get(name)
if (file !== undefined) {
  const { bench } = (await import(new URL(file, folder).href)) as {
    bench: (words: readonly string[]) => Promise<void>
  }
  await bench(process.argv.slice(3))
} else {
  console.error(`npm run bench -- ${[...files.keys()].join(' | ')}`)
  process.exitCode = 64
}
