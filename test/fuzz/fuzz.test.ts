import { describe, expect, test } from 'vitest'
import { RELATIONSHIPS } from './parsers/relationships.ts'
import { TOKENS } from './parsers/tokens.ts'
import { must, type Parser, play } from './play.ts'

const named = (name: string): Parser => {
  const parser = [...RELATIONSHIPS, ...TOKENS].find((one) => one.name === name)
  if (parser === undefined) throw new TypeError(name)
  return parser
}
const MS = 400

describe('fuzzing (npm run fuzz is the long one)', () => {
  test.each(['tuple', 'set'])('finds no fault in %s', async (name) => {
    const { accepted, fault } = await play(named(name), { seed: 3, ms: MS })
    expect(fault).toBe(null)
    expect(accepted).toBeGreaterThan(0)
  })

  test('finds a planted error, and says it with the shortest input', async () => {
    const good = named('tuple')
    const planted: Parser = {
      ...good,
      read(text) {
        if (text.startsWith('d') && text.includes('**')) throw new RangeError('planted')
        return good.read(text)
      },
    }
    const { fault } = await play(planted, { seed: 3, ms: 10 * MS })
    expect(fault).toEqual({ text: 'd**', message: 'RangeError: planted' })
  })

  test('finds a property that does not hold', async () => {
    const lax: Parser = {
      name: 'lax',
      seeds: ['ab'],
      words: ['#'],
      read(text) {
        must(!text.includes('#'), 'no #')
        return true
      },
    }
    expect((await play(lax, { seed: 1, ms: MS })).fault).toEqual({ text: '#', message: 'Violation: no #' })
  })

  test('says that a good input is refused', async () => {
    const { fault } = await play({ name: 'strict', seeds: ['a'], words: [], read: () => false }, { seed: 1, ms: MS })
    expect(fault?.message).toBe('a good input is refused')
  })
})
