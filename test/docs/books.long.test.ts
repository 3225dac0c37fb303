/** The books in docs/ do what they say: each command is run, and prints what is shown. */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startForeignProvider } from '../e2e/foreign-issuer.ts'
import { type BookPlayer, openBookPlayer } from './book-player.ts'
import { bookSteps, isPrinted } from './book-steps.ts'

const page = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

let player: BookPlayer
beforeAll(async () => {
  player = await openBookPlayer()
})
afterEach(async () => {
  await player.end('portcullis-sidecar')
  await player.end('node')
})
afterAll(async () => {
  await player.close()
})
const play = (name: string): Promise<void> => player.play(bookSteps(page(name)))

test('start.md leads from a PDP to a gated service, with its own people and with those of another provider', async () => {
  const provider = await startForeignProvider()
  provider.shape = (token) => {
    token.header.typ = 'JWT'
    const { client_id: azp, ...claims } = token.payload
    token.payload = { ...claims, azp, typ: 'Bearer', groups: ['sales'] }
  }
  player.replaced.set('https://sso.example.com/realms/acme', provider.issuer)
  const { access_token: token } = await provider.tokens('ann', 'https://app.example.com')
  player.export('TOKEN', token)
  try {
    await play('start.md')
  } finally {
    await provider.stop()
  }
})

test('models.md writes a model, tests it, and gets the answers that it shows', () => play('models.md'))

describe('a block of a book', () => {
  test.each([
    ['```sh often\nx\n```', /what is sh often/],
    ['```text\nx\n```', /no command prints this/],
    ['```yaml then\nx\n```', /what is yaml then/],
  ])('is refused when nobody could say what it is: %s', (text, why) => {
    expect(() => bookSteps(text)).toThrow(why)
  })

  test('shows what is printed, and … for what differs each time', () => {
    expect(isPrinted('id …\nend', 'id 7\n\nend  \n')).toBe(true)
    expect(isPrinted('id …\nend', 'id 7\nends\n')).toBe(false)
    expect(isPrinted('a.c', 'abc')).toBe(false)
  })
})
