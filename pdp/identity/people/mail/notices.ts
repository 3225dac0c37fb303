/** Mails about a change to a person's ways to sign in, so that the person notices a change by others. */

import type { Directory } from '../../../engine/store/directory.ts'
import { fillText } from '../../../shared/pages/words.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { Words } from '../../html/words/words.ts'
import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import type { Deliveries } from './deliveries.ts'
import { isMailAddress, linkMail, type Mailer } from './mail.ts'

/** How many such mails one person gets in an hour. */
const NOTICES_MAX = 20

export type Notices = {
  /** Sends the mail after the answer, in the language of the page. `left`: how many recovery codes are left. */
  send(
    user: string,
    notice: Exclude<keyof Words['factors']['mails'], 'subject' | 'open' | 'otherwise'>,
    about: { readonly words: Words; readonly left?: number },
  ): void
}

export function createNotices(deps: {
  readonly issuer: string
  readonly directory: Pick<Directory, 'user'>
  readonly mailer: Mailer | null
  readonly attempts: SharedAttempts
  readonly deliveries: Pick<Deliveries, 'later'>
  readonly log: Log
}): Notices {
  const { issuer, directory, mailer, attempts, deliveries, log } = deps
  const { host } = new URL(issuer)
  return {
    send(user, notice, { words, left = 0 }) {
      if (mailer === null) return
      const { [notice]: text, ...texts } = words.factors.mails
      const asked = fillText(text, { host, left: String(left) })
      const mail = linkMail({ ...texts, asked }, urlOf(issuer, PATHS.account))
      deliveries.later(async () => {
        const email = (await directory.user(user))?.email ?? null
        if (email === null || !isMailAddress(email)) return
        if (await attempts.take(`notices to ${user}`, NOTICES_MAX)) return mailer.send({ to: email, ...mail })
        log.warn({ event: 'mail_withheld', user })
      })
    },
  }
}
