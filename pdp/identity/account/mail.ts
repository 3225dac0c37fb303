/** Sends mail: by SMTP, or into a folder where no server is set. */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../process/log.ts'

/** `text`: plain text in lines of at most 76 characters, but for links. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string }
export type Mailer = {
  /** Rejects when no server took it. */
  send(mail: Mail): Promise<void>
}

const CONNECT_MS = 5_000
const SILENCE_MS = 10_000
// One mailbox, and nothing that a mail program could read as several, or as a command.
const ADDRESS = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@[^\s@,;:<>()[\]"\\\p{Cc}]{1,190}$/u
export const isMailAddress = (text: string): boolean => ADDRESS.test(text)

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
        // RFC 3834: no program answers it.
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}

/** For trying things out: nothing leaves the machine, and the log says which file to open. */
export function folderMailer({ folder, log }: { readonly folder: string; readonly log: Log }): Mailer {
  return {
    async send({ to, subject, text }) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const at = new Date().toISOString()
      const file = join(folder, `${at.replaceAll(':', '-')}-${randomBytes(4).toString('hex')}.eml`)
      await writeFile(file, `Date: ${at}\nTo: ${to}\nSubject: ${subject}\n\n${text}`, { mode: 0o600 })
      log.info({ event: 'mail_written', file })
    },
  }
}
