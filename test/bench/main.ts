/** `npm run bench`: all parts in one table; `-- NAME`: one part. Prints figures, never a verdict. */
import { existsSync, readdirSync } from 'node:fs'
import { misused, requireNames } from '../support/programs/arguments.ts'

const folder = new URL('./', import.meta.url)
/** Each part is a folder with a `bench.ts`. */
const files = new Map(
  readdirSync(folder)
    .map((name) => [name, `${name}/bench.ts`] as const)
    .filter(([, path]) => existsSync(new URL(path, folder))),
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
