import { describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../../../../pdp/identity/html/words/words.ts'
import { linkMail } from '../../../../../pdp/identity/people/mail/mail.ts'

const inOneLine = (text: string): string => text.replace(/\s+/g, ' ')
const LINK = `https://id.example.com/auth/account/reset?token=${'x'.repeat(43)}`

describe.each([...LANGUAGES])('a mail in %s', (_lang, { account: { mails } }) => {
  test.each(['reset', 'verification'] as const)(
    'for %s names the host, and has the link in a line of its own',
    (kind) => {
      const { subject, text } = linkMail(mails[kind], LINK)
      expect(subject).toContain('id.example.com')
      expect(text.split('\n')).toContain(LINK)
      expect(inOneLine(text)).toContain(inOneLine(mails[kind].otherwise))
      expect(subject + text).not.toMatch(/[{}]|&#?\w+;/)
    },
  )

  test.each(['reset', 'verification'] as const)('for %s has short lines, none of which begins with a mark', (kind) => {
    const lines = linkMail(mails[kind], LINK).text.split('\n')
    expect(lines.filter((line) => line !== LINK && line.length > 76)).toEqual([])
    expect(lines.filter((line) => /^[\s:?!;]/.test(line))).toEqual([])
  })
})

test('a host too long for a line is not cut', () => {
  const host = `${'long.'.repeat(20)}example`
  const texts = { subject: '{host}', asked: 'At {host}, yes.', open: 'Open:', otherwise: 'Else nothing.' }
  const { subject, text } = linkMail(texts, `https://${host}/x`)
  expect(subject).toBe(host)
  expect(text).toBe(`At\n${host},\nyes.\nOpen:\n\nhttps://${host}/x\n\nElse nothing.\n`)
})
