/** The secrets of a deployment: from the settings, or generated into the data directory. */
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { GivenMasterKeys } from '../../identity/issuer/keys/master-keys.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import { StartError } from '../../shared/process/exit.ts'
import { generatedSecret } from '../../shared/process/generated-secret.ts'
import { type PdpConfig, parseMasterKey } from './config.ts'

/** Throws StartError if a file of the data directory is not usable. */
export async function loadSecrets(
  config: PdpConfig,
): Promise<{ readonly adminSecret: string; readonly masterKeys: GivenMasterKeys }> {
  return {
    masterKeys: await loadMasterKeys(config),
    adminSecret: config.adminSecret ?? (await generatedSecret(join(config.dataDirectory, 'admin-secret'))),
  }
}

/** The master keys. A generated key has a generated successor, from the beginning of a rotation to its end. Throws StartError. */
export async function loadMasterKeys(config: PdpConfig): Promise<GivenMasterKeys> {
  if (config.masterKey !== null) return { current: config.masterKey, next: config.nextMasterKey }
  const path = join(config.dataDirectory, 'master-key')
  const current = keyIn(path, await generatedSecret(path))
  if (config.nextMasterKey !== null) return { current, next: config.nextMasterKey }
  const successor = successorPath(config)
  const text = await readFile(successor, 'utf8').catch((err: unknown) => {
    if (err instanceof Error && 'code' in err && err.code === 'ENOENT') return null
    throw new StartError(`${successor} cannot be read: ${messageOf(err)}`)
  })
  return { current, next: text === null ? null : keyIn(successor, text.trim()) }
}

/** Makes the successor of a generated key. Null when the master key is not generated. Throws StartError. */
export async function makeSuccessor(config: PdpConfig): Promise<Buffer | null> {
  if (config.masterKey !== null) return null
  return keyIn(successorPath(config), await generatedSecret(successorPath(config)))
}

/** Ends a rotation: the successor becomes the key. */
export const installSuccessor = (config: PdpConfig): Promise<void> =>
  rename(successorPath(config), join(config.dataDirectory, 'master-key'))

const successorPath = (config: PdpConfig): string => join(config.dataDirectory, 'next-master-key')

function keyIn(path: string, text: string): Buffer {
  const key = parseMasterKey(text)
  if (key === null) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return key
}
