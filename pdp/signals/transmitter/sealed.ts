/** The Authorization field that a receiver wants at its endpoint: stored encrypted, never shown or logged. */
import { type MasterKeys, open, seal } from '../../shared/base/encryption.ts'
import type { Stream } from './streams.ts'

export const AUTHORIZATION_PURPOSE = 'signal-authorization'
export const nameOfAuthorization = (stream: string): string => `signal-stream ${stream}`

export const sealAuthorization = (masterKeys: MasterKeys, stream: string, value: string): string =>
  seal(masterKeys.derive(AUTHORIZATION_PURPOSE), nameOfAuthorization(stream), value)

/** Throws Error when no master key fits. */
export function openAuthorization(
  masterKeys: MasterKeys,
  { id, authorizationSealed }: Pick<Stream, 'id' | 'authorizationSealed'>,
): string | null {
  if (authorizationSealed === null) return null
  return open(masterKeys.derive(AUTHORIZATION_PURPOSE), nameOfAuthorization(id), authorizationSealed)
}
