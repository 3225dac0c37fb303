import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openPasswordFile } from '../../../../../pdp/identity/people/passwords/password-file.ts'
import { createPasswordRules } from '../../../../../pdp/identity/people/passwords/password-rules.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-passwords-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const sha1 = (text: string): string => hash('sha1', text, 'hex').toUpperCase()
const digests = Array.from({ length: 2_000 }, (_, i) => sha1(`known ${i}`)).sort()
function fileOf(text: string): string {
  const path = join(folder, `${hash('sha1', text, 'hex')}.txt`)
  writeFileSync(path, text)
  return path
}

describe('a file of known passwords', () => {
  test.each([
    ['digests alone', digests.join('\n')],
    ['digests and an end of the last line', `${digests.join('\n')}\n`],
    ['counts of different lengths, lines of Windows', digests.map((digest, i) => `${digest}:${i ** 3}\r\n`).join('')],
    ['small letters', digests.join('\n').toLowerCase()],
  ])('of %s has each of its lines, and no other', async (_, text) => {
    const list = await openPasswordFile(fileOf(text))
    for (let i = 0; i < digests.length; i += 97) expect([i, await list.has(digests[i] ?? '')]).toEqual([i, true])
    expect(await list.has(digests[0] ?? '')).toBe(true)
    expect(await list.has(digests.at(-1) ?? '')).toBe(true)
    for (const strange of ['0'.repeat(40), 'F'.repeat(40), sha1('unknown'), sha1('another'), '', ':', '\n'])
      expect([strange, await list.has(strange)]).toEqual([strange, false])
  })

  test('of one line is a list too', async () => {
    const list = await openPasswordFile(fileOf(sha1('only')))
    expect([await list.has(sha1('only')), await list.has(sha1('other'))]).toEqual([true, false])
  })

  test.each([
    ['empty', ''],
    ['passwords themselves', 'password\n12345678\n'],
    ['of SHA-256', `${hash('sha256', 'x', 'hex')}\n`],
    ['compressed', '\u001f\u008b\u0008'],
  ])('that is %s is refused at the start', async (_, text) => {
    await expect(openPasswordFile(fileOf(text))).rejects.toThrow(/does not begin with a SHA-1 digest/)
  })

  test('that does not exist is refused at the start', async () => {
    await expect(openPasswordFile(join(folder, 'none'))).rejects.toThrow(/none/)
  })

  test('that was damaged since is an error, and no password that may be chosen', async () => {
    const path = fileOf(`${digests.join('\n')}\n#`)
    const list = await openPasswordFile(path)
    writeFileSync(path, `${digests[0]}\n${'nothing of this form\n'.repeat(5_000)}`)
    await expect(list.has(sha1('known 7'))).rejects.toThrow(/another form/)
  })
})

describe('a password', () => {
  const rules = createPasswordRules({ list: { has: async (digest) => digest === sha1('caf\u00e9 au lait') } })
  const problem = (password: string, repeated = password) =>
    rules.problem({ password, repeated, email: 'Ann.Example@x.example' })

  test.each([
    ['1234567', 'short'],
    ['😀😀😀😀', 'short'],
    ['PASSWORD1', 'breached'],
    ['ann.example@X.EXAMPLE', 'breached'],
    ['caf\u00e9 au lait', 'breached'],
    ['cafe\u0301 au lait', 'breached'],
    ['x'.repeat(257), 'long'],
    ['x'.repeat(256), null],
    ['eight ch', null],
    ['密码密码密码密码', null],
  ])('%j is %s', async (password, expected) => {
    expect(await problem(password)).toBe(expected)
  })

  test('that was typed differently the second time is not taken', async () => {
    expect(await problem('a good password', 'a good Password')).toBe('different')
  })
})
