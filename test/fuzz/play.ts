/** Plays changed inputs to one parser, and makes the one that fails as short as it can be. */
import { seeded } from '../sidecar/fuzz/targets.ts'
import { mutated } from './mutate.ts'

export type Parser = {
  readonly name: string
  /** Inputs that are accepted; others are made of them. */
  readonly seeds: readonly string[]
  /** Pieces that mean something to the parser. */
  readonly words: readonly string[]
  /**
   * Reads the text. @returns whether it was accepted. Throws where a property does not hold: a refusal is no error, and any
   * error but the parser's own is a fault.
   */
  readonly read: (text: string) => boolean | Promise<boolean>
}
export type Fault = { readonly text: string; readonly message: string }
export type Played = { readonly inputs: number; readonly accepted: number; readonly fault: Fault | null }

/** Processor time of one input. */
const WORK_MS_MAX = 1_500
const SHORTENING_MS = 3_000

export async function play(
  parser: Parser,
  { seed, ms }: { readonly seed: number; readonly ms: number },
): Promise<Played> {
  for (const text of parser.seeds) {
    const fault = await faultOf(parser, text)
    if (fault !== null) return { inputs: 0, accepted: 0, fault }
    if (!(await parser.read(text)))
      return { inputs: 0, accepted: 0, fault: { text, message: 'a good input is refused' } }
  }
  const random = seeded(seed)
  const pool = [...parser.seeds]
  const endMs = performance.now() + ms
  let [inputs, accepted] = [0, 0]
  while (performance.now() < endMs) {
    const from = pool[Math.floor(random() * pool.length)] ?? ''
    const text = mutated(from, parser.seeds, parser.words, random)
    inputs++
    const fault = await faultOf(parser, text)
    if (fault !== null) return { inputs, accepted, fault: await shortened(parser, fault) }
    if (!(await parser.read(text))) continue
    accepted++
    // What was accepted leads further than what was begun with.
    if (pool.length < 500) pool.push(text)
    else pool[parser.seeds.length + (accepted % (500 - parser.seeds.length))] = text
  }
  return { inputs, accepted, fault: null }
}

export async function faultOf(parser: Parser, text: string): Promise<Fault | null> {
  const before = process.cpuUsage()
  try {
    await parser.read(text)
  } catch (err) {
    return { text, message: err instanceof Error ? `${err.name}: ${err.message}` : String(err) }
  }
  const { user, system } = process.cpuUsage(before)
  const workMs = (user + system) / 1_000
  return workMs > WORK_MS_MAX ? { text, message: `took more than ${WORK_MS_MAX} ms of processor time` } : null
}

/** Pieces are left out as long as it still fails, the larger first. */
async function shortened(parser: Parser, fault: Fault): Promise<Fault> {
  let shortest = fault
  const endMs = performance.now() + SHORTENING_MS
  for (let size = Math.ceil(fault.text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < shortest.text.length && performance.now() < endMs; ) {
      const found = await faultOf(parser, shortest.text.slice(0, at) + shortest.text.slice(at + size))
      if (found === null) at += size
      else shortest = found
    }
  return shortest
}

/** What the parser makes of it; undefined where it refuses it with an error that it declares. */
export function readOrRefused<T>(read: () => T, isRefusal: (error: unknown) => boolean): T | undefined {
  try {
    return read()
  } catch (err) {
    if (isRefusal(err)) return undefined
    throw err
  }
}

/** Throws unless it holds. */
export function must(holds: boolean, what: string): void {
  if (!holds) throw new Violation(what)
}

class Violation extends Error {
  override readonly name = 'Violation'
}
