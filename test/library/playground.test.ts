/** The playground's page can be made of what the engine imports; a real browser runs it in `npm run test:console`. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

test('the page is made, and is small', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['bin/dev/playground/build.ts'], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(Number(/: (\d+) KiB compressed/.exec(stdout)?.[1])).toBeLessThan(400)
})
