/** A log that nobody reads, that reads slowly, or that has no room, never stops the process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { collectLines } from '../../../../pdp/shared/process/log-output.ts'

const MIB = 1024 * 1024
const refusal = (code: string): Error => Object.assign(new Error(code), { code })

describe('the log of a running process', () => {
  let child: ChildProcess
  afterEach(() => {
    child.kill('SIGKILL')
  })

  /** Resolves with its address. */
  async function start(stdout: 'pipe' | number): Promise<string> {
    const program = new URL('logging-program.ts', import.meta.url).pathname
    child = spawn(process.execPath, [program], { stdio: ['ignore', stdout, 'pipe'] })
    child.stdout?.pause()
    const port = await new Promise((done) => child.stderr?.once('data', (text) => done(String(text).trim())))
    return `http://127.0.0.1:${port}/`
  }
  /** What the last answer says that was dropped. */
  async function ask(origin: string, count: number): Promise<number> {
    let text = ''
    for (let at = 0; at < count; at += 1) text = await (await fetch(origin + at)).text()
    return Number(text)
  }
  async function readAll(): Promise<readonly { readonly [name: string]: unknown }[]> {
    let text = ''
    child.stdout?.on('data', (piece) => (text += piece)).resume()
    await new Promise((done) => child.stdout?.once('end', done))
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  test('does not stop it on a pipe that nobody reads, and says how many lines were dropped when somebody does', async () => {
    const origin = await start('pipe')
    expect(await ask(origin, 2_000)).toBeGreaterThan(0)
    const reading = readAll()
    await fetch(`${origin}end`)
    const lines = await reading
    const [said] = lines.filter(({ event }) => event === 'log_lines_dropped')
    const written = lines.filter(({ event }) => event === 'request').length
    expect(said).toMatchObject({ level: 'warn', service: 'test', time: expect.any(String) })
    expect(written + Number(said?.count)).toBe(2_001)
    expect(lines.map(({ event }) => event)).toContain('last_words')
    await expect.poll(() => child.exitCode).toBe(3)
  })

  test('does not stop it when the reader is gone', async () => {
    const origin = await start('pipe')
    child.stdout?.destroy()
    expect(await ask(origin, 200)).toBeGreaterThan(0)
  })

  test('does not stop it on a full disk', async () => {
    const full = openSync('/dev/full', 'w')
    const origin = await start(full)
    closeSync(full)
    expect(await ask(origin, 2_000)).toBeGreaterThan(0)
  })

  test('does not keep a process that ends from ending', async () => {
    const origin = await start('pipe')
    await ask(origin, 500)
    const ended = new Promise((done) => child.once('exit', done))
    await fetch(`${origin}end`)
    expect(await ended).toBe(3)
  })
})

describe('collectLines', () => {
  let writes: string[]
  let room: number
  let failure: Error | null
  const write = (bytes: Buffer): number => {
    if (failure !== null) throw failure
    if (room === 0) throw refusal('EAGAIN')
    const taken = bytes.subarray(0, room)
    room -= taken.length
    writes.push(taken.toString())
    return taken.length
  }
  const collect = () => collectLines({ service: 'test', write })
  const line = `${'x'.repeat(99)}\n`
  const about = (count: number): string => `"event":"log_lines_dropped","count":${count}}\n`
  beforeEach(() => {
    vi.useFakeTimers()
    writes = []
    room = Number.POSITIVE_INFINITY
    failure = null
  })
  afterEach(() => vi.useRealTimers())

  test('writes the lines of a moment at once, in order, within 20 ms', () => {
    const lines = collect()
    for (const text of ['a\n', 'b\n', 'c\n']) lines.write(text)
    vi.advanceTimersByTime(19)
    expect(writes).toEqual([])
    vi.advanceTimersByTime(1)
    expect(writes).toEqual(['a\nb\nc\n'])
    lines.write('d\n')
    vi.advanceTimersByTime(20)
    expect(writes).toEqual(['a\nb\nc\n', 'd\n'])
  })

  test('does not wait when there is much to write, nor at the end', () => {
    const lines = collect()
    for (let at = 0; at < 164; at += 1) lines.write(line)
    expect(writes.map(({ length }) => length)).toEqual([16_400])
    lines.finish(0)
    expect(writes).toHaveLength(1)
    lines.write(line)
    lines.finish(0)
    expect(writes).toHaveLength(2)
    vi.advanceTimersByTime(1_000)
    expect(writes).toHaveLength(2)
  })

  test.each(['EAGAIN', 'ENOSPC', 'EDQUOT'])(
    'keeps a MiB of lines during %s, drops what comes then, and says so',
    (code) => {
      const lines = collect()
      failure = refusal(code)
      const held = Math.floor(MIB / line.length)
      for (let at = 0; at < held; at += 1) lines.write(line)
      expect(lines.droppedCount()).toBe(0)
      for (let at = 0; at < 3; at += 1) lines.write(line)
      expect(lines.droppedCount()).toBe(3)
      failure = null
      vi.advanceTimersByTime(200)
      const text = writes.join('')
      expect(text.startsWith(line.repeat(held))).toBe(true)
      expect(text.endsWith(about(3))).toBe(true)
      expect(text.match(/log_lines_dropped/g)).toHaveLength(1)
      lines.write(line)
      vi.advanceTimersByTime(200)
      expect(writes.at(-1)).toBe(line)
    },
  )

  test('keeps an error where other lines are dropped, and drops errors past their room', () => {
    const lines = collect()
    room = 0
    for (let at = 0; at * line.length < MIB; at += 1) lines.write(line)
    const error = `{"level":"error","event":"${'e'.repeat(969)}"}\n`
    const dropped = lines.droppedCount()
    for (let at = 0; at < 70; at += 1) lines.write(error)
    const kept = 70 - (lines.droppedCount() - dropped)
    expect([kept > 60, kept < 70]).toEqual([true, true])
    room = Number.POSITIVE_INFINITY
    lines.finish(0)
    expect(writes.join('').split(error)).toHaveLength(kept + 1)
  })

  test('goes on inside a line where the reader took a part', () => {
    const lines = collect()
    room = 5
    lines.write('abc\n')
    lines.write('def\n')
    vi.advanceTimersByTime(20)
    expect(writes).toEqual(['abc\nd'])
    room = 100
    vi.advanceTimersByTime(1)
    expect(writes.join('')).toBe('abc\ndef\n')
    expect(lines.droppedCount()).toBe(0)
  })

  test('tries less and less often while nobody reads', () => {
    const lines = collect()
    let tries = 0
    failure = refusal('EAGAIN')
    const counted = collectLines({
      service: 'test',
      write(bytes) {
        tries += 1
        return write(bytes)
      },
    })
    counted.write(line)
    vi.advanceTimersByTime(10_000)
    expect(tries).toBeLessThan(120)
    expect(lines.droppedCount()).toBe(0)
  })

  test('counts the lines of a reader that is gone, and tries again with the next line only', () => {
    const lines = collect()
    failure = refusal('EPIPE')
    lines.write('a\n')
    lines.write('b\n')
    vi.advanceTimersByTime(10_000)
    expect([lines.droppedCount(), vi.getTimerCount()]).toEqual([2, 0])
    failure = null
    lines.write('c\n')
    vi.advanceTimersByTime(20)
    expect(writes).toEqual(['c\n'])
  })
})
