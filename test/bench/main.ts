/** `npm run bench`: all parts in one table; `-- NAME`: one part. Prints figures, never a verdict. */
import { existsSync, readdirSync } from 'node:fs'
import { misused, requireNames } from '../support/programs/arguments.ts'

const folder = new URL('./', import.meta.url)
/** A file, or `bench.ts` in a folder. */
const files = new Map(
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) {
      const path = `${entry.name}/bench.ts`
      return existsSync(new URL(path, folder)) ? [[entry.name, path]] : []
    }
    const isBench = entry.name.endsWith('.ts') && entry.name !== 'main.ts' && !entry.name.includes('-')
    return isBench ? [[entry.name.slice(0, -3), entry.name]] : []
  }),
)
const USAGE = `npm run bench [-- --short | --json FILE | --write]\nnpm run bench -- ${[...files.keys()].join(' | ')}`
const words = process.argv.slice(2)
const [name = ''] = words
const file = files.get(name)
try {
  if (file !== undefined) {
    const { bench } = (await import(new URL(file, folder).href)) as {
      bench: (words: readonly string[]) => Promise<void>
    }
    await bench(words.slice(1))
  } else if (name === '' || name.startsWith('--')) {
    const { runSuite } = await import('./suite/suite.ts')
    await runSuite(words)
  } else {
    requireNames([name], [...files.keys()], USAGE)
  }
} catch (err) {
  if (!(err instanceof TypeError && 'code' in err && String(err.code).startsWith('ERR_PARSE_ARGS'))) throw err
  misused(err.message, USAGE)
}
