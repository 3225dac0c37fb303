/** Makes the `state` of requested verification events, which all nodes can recognize, even after a restart. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { MasterKeys } from '../../shared/base/encryption.ts'

const PURPOSE = 'verification-state'
const MAC_BYTES = 16

export type VerificationStates = {
  make(receiverId: string, nowMs: number): string
  isOurs(receiverId: string, state: string): boolean
}

export function createVerificationStates(masterKeys: MasterKeys): VerificationStates {
  const mac = (key: Buffer, receiverId: string, at: string): Buffer =>
    createHmac('sha256', key).update(`${receiverId} ${at}`).digest().subarray(0, MAC_BYTES)
  return {
    make(receiverId, nowMs) {
      const [key] = masterKeys.derive(PURPOSE)
      return `${nowMs}.${mac(key, receiverId, String(nowMs)).toString('base64url')}`
    },
    isOurs(receiverId, state) {
      const [at = '', given = ''] = state.split('.')
      const bytes = Buffer.from(given, 'base64url')
      if (bytes.length !== MAC_BYTES || state !== `${at}.${bytes.toString('base64url')}`) return false
      return masterKeys.derive(PURPOSE).some((key) => timingSafeEqual(mac(key, receiverId, at), bytes))
    },
  }
}
