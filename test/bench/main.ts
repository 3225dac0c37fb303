/** `npm run bench -- NAME`: prints figures, never a verdict. Ratios come from one run, since the machine is noisy. */
import { readdirSync } from 'node:fs'

const folder = new URL('./', import.meta.url)
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ts') && file !== 'main.ts' && !file.includes('-'))
  .map((file) => file.slice(0, -3))
const [name = ''] = process.argv.slice(2)
if (names.includes(name)) {
  const { bench } = (await import(new URL(`${name}.ts`, folder).href)) as {
    bench: (words: readonly string[]) => Promise<void>
  }
  await bench(process.argv.slice(3))
} else {
  console.error(`npm run bench -- ${names.join(' | ')}`)
  process.exitCode = 64
}
