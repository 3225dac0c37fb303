/** The secrets of a deployment: from the settings, or generated into the data directory. */
import { join } from 'node:path'
import { StartError } from '../process/exit.ts'
import { generatedSecret } from '../process/generated-secret.ts'
import { type PdpConfig, parseMasterKey } from './config.ts'

export type Secrets = { readonly adminSecret: string; readonly masterKey: Buffer }

/** Throws StartError if a file of the data directory is not usable. */
export async function loadSecrets(config: PdpConfig): Promise<Secrets> {
  const path = join(config.dataDirectory, 'master-key')
  const masterKey = config.masterKey ?? parseMasterKey(await generatedSecret(path))
  if (masterKey === null) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return {
    masterKey,
    adminSecret: config.adminSecret ?? (await generatedSecret(join(config.dataDirectory, 'admin-secret'))),
  }
}
