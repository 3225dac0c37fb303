/** Settings of people's accounts: where mail is sent, and which passwords people may not choose. */

import type { AccountSettings } from '../../identity/people/account/deps.ts'
import { folderMailer, type Mailer, smtpMailer } from '../../identity/people/mail/mail.ts'
import { openPasswordFile } from '../../identity/people/passwords/password-file.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import { StartError } from '../../shared/process/exit.ts'
import type { Log } from '../../shared/process/log.ts'
import type { PdpConfig } from './config.ts'

/** Throws StartError when the file of known passwords is not usable. */
export async function accountSettings(
  { mail, knownPasswordsFile: file }: Pick<PdpConfig, 'mail' | 'knownPasswordsFile'>,
  { log }: { readonly log: Log },
): Promise<AccountSettings> {
  const knownPasswords = file === null ? null : await openPasswordFile(file).catch(explain)
  return { mailer: mailerOf(mail, log), knownPasswords }
}

function mailerOf(mail: PdpConfig['mail'], log: Log): Mailer | null {
  if (mail === null) return null
  return 'folder' in mail ? folderMailer({ ...mail, log }) : smtpMailer(mail)
}

function explain(err: unknown): never {
  throw new StartError(`PORTCULLIS_KNOWN_PASSWORDS_FILE: ${messageOf(err)}`)
}
