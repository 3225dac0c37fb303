/** The words of these pages and mails. */
import type { PasswordProblem } from './password-rules.ts'

export const PASSWORD_PROBLEMS: { readonly [problem in PasswordProblem | 'busy' | 'wrong' | 'tooMany']: string } = {
  wrong: 'The present password is not right.',
  tooMany: 'There were too many attempts. Try again in a few minutes.',
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

export const HOME = {
  title: 'Your account',
  verified: 'Your e-mail address is verified.',
  unverified: 'Your e-mail address is not verified.',
  verify: 'Send a link that verifies it',
  proofs: 'How you sign in',
  password: 'Change the password',
  sessions: 'Where you are signed in',
  session: 'Signed in',
  thisSession: 'This browser',
  applications: 'Connected applications',
  noApplications: 'None.',
  since: 'since',
  offline: 'also while you are away',
  end: 'End',
  ended: 'It has ended, with all its tokens.',
  gone: 'There is no such thing any more.',
  signOut: 'Sign out',
} as const

export const CHANGE = {
  title: 'Change the password',
  present: 'Present password',
  save: 'Change the password',
  doneTitle: 'Your password is changed',
  done: 'All other sign-ins and connections have ended.',
  back: 'Back to your account',
} as const

export const VERIFICATION = {
  title: 'Verify your address',
  lead: 'Is this your e-mail address?',
  confirm: 'Yes, verify it',
  sentTitle: 'Look into your mail',
  sent: 'A link is on its way. It is good for 30 minutes, once.',
  doneTitle: 'Your address is verified',
  done: 'Applications that may know your address know that it is yours.',
  goneTitle: 'This link is no longer good',
  gone: 'It was used before, has expired, or is for another account.',
  noMail: 'This server cannot send mail to your address.',
  tooMany: 'Too many links were asked for. Try again in an hour.',
  back: 'Back to your account',
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
  verification: (link: string, host: string): Words => ({
    subject: `Verify your address for ${host}`,
    text: lines(
      `Somebody wrote this address for an account at ${host}.`,
      'If the account is yours, open this link and sign in:',
      '',
      link,
      '',
      'The link is good for 30 minutes, and once. If it is not yours, do nothing.',
    ),
  }),
} as const
