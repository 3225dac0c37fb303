import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const MODULE = fileURLToPath(new URL('../../../../pdp/shared/process/descriptors.ts', import.meta.url))
const SCRIPT = `
import { closeSync, openSync } from 'node:fs'
import { watchDescriptors } from ${JSON.stringify(MODULE)}
const held = []
const write = (entry) => {
  console.log(JSON.stringify(entry))
  for (const one of held.splice(0)) closeSync(one)
  if (entry.event === 'descriptors_available') process.exit(0)
}
watchDescriptors({ log: { info: write, error: write }, everyMs: 50 })
setInterval(() => undefined, 1_000)
setTimeout(() => {
  try {
    for (;;) held.push(openSync('/dev/null'))
  } catch {}
}, 200)
`

test('running out of file descriptors is said, with the limit, and so is the end of it', async () => {
  const command = `ulimit -n 128; exec "${process.execPath}" --input-type=module -e "$SCRIPT"`
  const child = spawn('sh', ['-c', command], { env: { ...process.env, SCRIPT } })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const status = await new Promise((resolve) => child.on('exit', resolve))
  const lines = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines[0]).toMatchObject({ event: 'descriptors_exhausted', code: 'EMFILE', limit: 128 })
  expect([lines.at(-1)?.event, status]).toEqual(['descriptors_available', 0])
})
