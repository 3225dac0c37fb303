/** A real SMTP server on loopback, and what a person reads of the mails that it took. */
import { SMTPServer } from 'smtp-server'
import type { AccountSettings } from '../../../../../pdp/identity/people/account/deps.ts'
import { type Mailer, smtpMailer } from '../../../../../pdp/identity/people/mail/mail.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'

export type ReceivedMail = { readonly to: readonly string[]; readonly raw: string; readonly text: string }
export type Mailbox = {
  readonly mailer: Mailer
  readonly received: ReceivedMail[]
  /** The link of the newest mail with one to this address, without its origin. Throws Error without one. */
  linkTo(address: string): string
  /** It takes no mail from now on. */
  refuse: boolean
  close(): Promise<void>
}

/** Passwords are hashed for next to nothing. */
export const accountWith = ({ mailer }: Pick<Mailbox, 'mailer'>): AccountSettings => ({
  mailer,
  knownPasswords: null,
  hashPassword: async (password) => cheapHash(password),
})

export async function openMailbox(): Promise<Mailbox> {
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData(stream, session, done) {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => void pieces.push(piece))
      stream.on('end', () => {
        if (mailbox.refuse) return done(new Error('the mailbox is full'))
        const raw = Buffer.concat(pieces).toString('utf8')
        const to = session.envelope.rcptTo.map(({ address }) => address)
        received.push({ to, raw, text: decoded(raw) })
        done()
      })
    },
  })
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => {
      const address = listening.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  const mailbox: Mailbox = {
    mailer: smtpMailer({ url: `smtp://127.0.0.1:${port}`, from: 'Example <no-reply@x.example>' }),
    received,
    refuse: false,
    linkTo(address) {
      const mail = received.findLast(({ to, text }) => to.includes(address) && LINK.test(text))
      const link = LINK.exec(mail?.text ?? '')?.[1]
      if (link === undefined) throw new Error(`no link for ${address} in ${received.length} mails`)
      return link
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return mailbox
}

/** One with a token; others lead to the account. */
const LINK = /https?:\/\/[^/\s]+(\/\S+\?token=\S+)/

/** The body, without quoted-printable (RFC 2045 section 6.7). */
function decoded(raw: string): string {
  const [head = '', ...body] = raw.split('\r\n\r\n')
  const text = body.join('\n\n')
  if (!/^content-transfer-encoding: quoted-printable/im.test(head)) return text
  const bytes = text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
