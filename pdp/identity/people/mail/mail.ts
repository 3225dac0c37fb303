/** Sends mail: by SMTP, or into a folder where no server is set. */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { domainToASCII } from 'node:url'
import { fillText } from '../../../shared/pages/words.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { Words } from '../../html/words/words.ts'

/** `text`: plain text in lines of at most 76 characters; links may be longer. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string }
export type Mailer = {
  /** Rejects when no server accepted the mail. */
  send(mail: Mail): Promise<void>
}

// French has a space before some punctuation marks: no line may begin with such a mark.
const LINE = /(.{1,76})(?: (?![:?!;])|$)/g
const CONNECT_MS = 5_000
const SILENCE_MS = 10_000
/** The head of a mail in a file. */
const UTF8 = ['MIME-Version: 1.0', 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit']
// Matches a single mailbox without characters that a mail program could read as several addresses or as a command.
const ADDRESS = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@[^\s@,;:<>()[\]"\\\p{Cc}]{1,190}$/u
export const isMailAddress = (text: string): boolean => ADDRESS.test(text)

/** The mailbox as providers identify it: without case and all after a plus sign, and for many of them without dots. */
export function mailboxOf(address: string): string {
  const at = address.lastIndexOf('@')
  const [local = ''] = address.slice(0, at).normalize('NFKC').toLowerCase().split('+')
  const host = address.slice(at + 1)
  return `${local.replaceAll('.', '')}@${domainToASCII(host) || host.toLowerCase()}`
}

/** A mail with a link; the text names the link's host. `more`: other values for the text. */
export function linkMail(
  texts: Words['account']['mails']['reset'],
  link: string,
  more: { readonly [name: string]: string } = {},
): Omit<Mail, 'to'> {
  const { host } = new URL(link)
  const paragraph = (text: string): string => inLines(fillText(text, { ...more, host }))
  return {
    subject: fillText(texts.subject, { ...more, host }),
    text: `${paragraph(texts.asked)}${paragraph(texts.open)}\n${link}\n\n${paragraph(texts.otherwise)}`,
  }
}

/** Lines, each with its line break. A word that is too long stays whole. */
const inLines = (text: string): string => text.replaceAll(LINE, '$1\n')

/** `url`: `smtp://` or `smtps://`, with user and password if need be. `from`: an address, or `Name <address>`. */
export function smtpMailer({ url, from }: { readonly url: string; readonly from: string }): Mailer {
  const { hostname } = new URL(url)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  async function open() {
    // Loaded by the first mail: most processes never send one.
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      // Mails carry what opens an account. `?requireTLS=false` in the URL permits a relay without TLS.
      requireTLS: !isLocal,
      ignoreTLS: isLocal,
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  let transport: ReturnType<typeof open> | null = null
  return {
    async send({ to, subject, text }) {
      transport ??= open()
      await (await transport).sendMail({
        from,
        to: { name: '', address: to },
        subject,
        text,
        // Tells programs not to answer (RFC 3834).
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}

/** For trying out: no mail leaves the machine, and the log names the file of each mail. */
export function folderMailer({ folder, log }: { readonly folder: string; readonly log: Log }): Mailer {
  return {
    async send({ to, subject, text }) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const at = new Date().toISOString()
      const file = join(folder, `${at.replaceAll(':', '-')}-${randomBytes(4).toString('hex')}.eml`)
      const heads = [`Date: ${at}`, `To: ${to}`, `Subject: ${subject}`]
      await writeFile(file, `${[...heads, ...UTF8].join('\n')}\n\n${text}`, { mode: 0o600 })
      log.info({ event: 'mail_written', file })
    },
  }
}
