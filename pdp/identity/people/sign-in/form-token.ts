/** A token in each form of ours, made for one session. It protects in addition to the cookie's SameSite=Lax. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { MasterKeys } from '../../../shared/base/encryption.ts'

const PURPOSE = 'form-signature'

/** `session`: the name of the session, as the pages of this kind write it. */
export const formToken = (masterKeys: MasterKeys, session: string): string =>
  signature(masterKeys.derive(PURPOSE)[0], session)

export function hasFormToken(form: URLSearchParams, masterKeys: MasterKeys, session: string): boolean {
  const given = Buffer.from(form.get('xsrf') ?? '')
  return masterKeys.derive(PURPOSE).some((key) => {
    const expected = Buffer.from(signature(key, session))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

const signature = (key: Buffer, text: string): string => createHmac('sha256', key).update(text).digest('base64url')
