import { expect, test } from 'vitest'
import { mailboxOf } from '../../../../../pdp/identity/people/mail/mail.ts'

test.each([
  ['Ann@Example.com', 'ann@example.com'],
  ['ann+invoices@example.com', 'ann@example.com'],
  ['a.n.n@example.com', 'ann@example.com'],
  ['ａｎｎ@example.com', 'ann@example.com'],
  ['ann@EXÄMPLE.com', 'ann@xn--exmple-cua.com'],
  ['ann@xn--exmple-cua.com', 'ann@xn--exmple-cua.com'],
])('%s is delivered to %s', (address, mailbox) => {
  expect(mailboxOf(address)).toBe(mailbox)
})

test.each([
  ['ann@example.com', 'ann@example.org'],
  ['ann@example.com', 'anne@example.com'],
  ['ann@a.example', 'ann@b.example'],
])('%s is another mailbox than %s', (one, other) => {
  expect(mailboxOf(one)).not.toBe(mailboxOf(other))
})
