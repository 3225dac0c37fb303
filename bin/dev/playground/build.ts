/** `npm run playground`: the engine, the editor of models and explanations as one static page, `dist/playground/index.html`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

const HERE = import.meta.dirname
const OUT = 'dist/playground'

const build = await rolldown({
  input: join(HERE, 'page.js'),
  platform: 'browser',
  plugins: [
    {
      name: 'node-in-a-browser',
      // What the engine takes from Node has a stand-in there; another module would be a mistake.
      resolveId: (id) => (id.startsWith('node:') ? join(HERE, 'browser', `${id.slice(5).replace('/', '-')}.js`) : null),
    },
  ],
})
const { output } = await build.generate({ format: 'esm', minify: true, codeSplitting: false })
const [{ code }] = output
const read = (name: string): string => readFileSync(join(HERE, name), 'utf8')
const page = read('page.html')
  .replace('/* styles */', () => read('page.css'))
  // An end of the element inside of the code would end the code.
  .replace('/* code */', () => code.replaceAll('</script', '<\\/script'))
mkdirSync(OUT, { recursive: true })
writeFileSync(join(OUT, 'index.html'), page)
console.log(`${OUT}/index.html: ${Math.ceil(gzipSync(page).length / 1_024)} KiB compressed`)
