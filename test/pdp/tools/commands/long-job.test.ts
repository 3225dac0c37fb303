/** Jobs that take long, names that hide something, and the colour of a verdict. */
import { EventEmitter } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { table } from '../../../../pdp/tools/commands/everyday/print.ts'
import { watchJob } from '../../../../pdp/tools/commands/long-job.ts'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
beforeAll(async () => {
  served = await servePdp()
  await served.good('org put acme')
  await served.good('user put ann')
  await served.good('member put ann -o acme')
})
afterAll(() => served.close())

function terminal(isTTY: boolean) {
  const said: string[] = []
  const ended: number[] = []
  const io = Object.assign(new EventEmitter(), {
    stderr: { isTTY, write: (text: string) => said.push(text) },
    exit: (status: number) => void ended.push(status),
  })
  return { io: io as unknown as NodeJS.Process, said, ended }
}
const job = (shown: boolean) => ({ unit: 'lines', total: 4_000, shown, left: () => 'go on with --after-line 2000' })

test('a job says how far it is, of how much and how fast, on a terminal alone', async () => {
  for (const [isTTY, shown, count] of [
    [true, true, 2],
    [false, true, 0],
    [true, false, 0],
  ] as const) {
    const { io, said } = terminal(isTTY)
    await watchJob(io, job(shown), async (report) => report(4_000))
    expect(said).toHaveLength(count)
    if (count > 0) expect(said.join('')).toMatch(/^\r4000 of 4000 lines, \d+ a second\n$/)
  }
})

test('Ctrl-C says what is stored and how to go on, and a job that is over is not stopped', async () => {
  const { io, said, ended } = terminal(false)
  await watchJob(io, job(true), async () => io.emit('SIGINT'))
  expect([said, ended]).toEqual([['\nstopped: go on with --after-line 2000\n'], [130]])
  expect(io.emit('SIGINT')).toBe(false)
})

test('characters that nobody sees are shown in tables and verdicts', async () => {
  expect(table([{ id: 'a\u200bb' }], ['id'])).toContain('aU+200Bb')
  const { out } = await served.run('check user:ann viewer doc:a\u202eb -o acme')
  expect(out).toContain('doc:aU+202Eb')
  expect(out).not.toContain('\u202e')
})

test('a verdict has no colour where nobody looks', async () => {
  expect((await served.run('check user:ann viewer doc:1 -o acme')).out).toMatch(/^denied {2}user:ann/)
})
