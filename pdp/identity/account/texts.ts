/** The words of these pages and mails. */
import type { PasswordProblem } from './password-rules.ts'

export const PASSWORD_PROBLEMS: { readonly [problem in PasswordProblem | 'busy']: string } = {
  short: 'A password has at least eight characters.',
  long: 'A password has at most 256 characters.',
  breached: 'Many people use this password, or it was stolen somewhere before: choose another one.',
  different: 'The two passwords differ.',
  busy: 'Too many people are signing in right now. Try again in a moment.',
}

export const FORGOTTEN = {
  title: 'Forgotten password',
  lead: 'Write your e-mail address, and we send you a link with which you choose a new password.',
  email: 'E-mail address',
  send: 'Send the link',
  sentTitle: 'Look into your mail',
  sent: 'If there is an account with this address, a link is on its way. It is good for 30 minutes, once, and in this browser.',
  noMail: 'This server sends no mail. Ask the person who set up your account for a new password.',
  tooMany: 'Too many links were asked for from here. Try again in an hour.',
} as const

export const RESET = {
  title: 'Choose a new password',
  lead: 'For the account',
  password: 'New password',
  repeated: 'The same once more',
  save: 'Set the password',
  goneTitle: 'This link is no longer good',
  gone: 'It was used before, has expired, or is not whole.',
  otherBrowserTitle: 'This link belongs to another browser',
  otherBrowser: 'Open it in the browser in which you asked for it, or ask for a link here.',
  again: 'Ask for another link',
  doneTitle: 'Your password is set',
  done: 'All sign-ins and connections of before have ended.',
  signIn: 'Sign in',
} as const

type Words = { readonly subject: string; readonly text: string }
const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`

export const mails = {
  reset: (link: string, host: string): Words => ({
    subject: `Choose a new password for ${host}`,
    text: lines(
      `Somebody asked for a new password for your account at ${host}.`,
      'Choose it here, in the browser in which you asked:',
      '',
      link,
      '',
      'The link is good for 30 minutes, and once. If it was not you, do nothing:',
      'your password stays as it is, and nobody got this link but you.',
    ),
  }),
} as const
