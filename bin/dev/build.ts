/** `npm run build`: JavaScript and declarations in dist/, with the playground and the files beside the code that it reads when it runs. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BOOKS } from './image/assemble.ts'

rmSync('dist', { recursive: true, force: true })
const compiled = spawnSync(join('node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.build.json'], { stdio: 'inherit' })
if (compiled.status !== 0) process.exit(1)

const CODE = /\.(ts|cts|mts)$/
for (const folder of ['pdp', 'sidecar']) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const beside = name.includes('.') && !CODE.test(name)
    if (beside) cpSync(join(folder, name), join('dist', folder, name))
  }
}
for (const name of globSync(BOOKS)) cpSync(name, join('dist', name))
for (const bin of ['pdp/bin.js', 'sidecar/bin.js']) chmodSync(join('dist', bin), 0o755)
await import('./playground/build.ts')
