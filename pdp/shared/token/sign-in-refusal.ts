/** Tests whether an issuer would begin a sign-in, which means that it knows the client and its redirect URI. */
import { messageOf } from '../base/error-message.ts'
import { members } from './jws.ts'
import { describeSlash, readJson } from './remote-keys.ts'

const TIMEOUT_MS = 5_000
/** A challenge (RFC 7636 section 4.2) that no verifier fits. */
const CHALLENGE = 'A'.repeat(43)

/**
 * Asks like a browser without a session (`prompt=none`), which changes nothing at the issuer. Never throws. `refused`: the issuer does not
 * know the client or its redirect URI. `unknown`: it could not be asked.
 */
export async function signInVerdict({
  issuer,
  clientId,
  redirectUri,
}: {
  readonly issuer: string
  readonly clientId: string
  readonly redirectUri: string
}): Promise<{ readonly kind: 'begins' | 'refused' | 'unknown'; readonly reason: string }> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const configuration = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const headers = { accept: 'application/json' }
    const metadata = members(
      await readJson(await fetch(configuration, { redirect: 'manual', signal, headers }), configuration),
    )
    if (metadata?.issuer !== issuer)
      throw new Error(`its metadata is that of another issuer${describeSlash(issuer, metadata?.issuer)}`)
    const url = new URL(String(metadata.authorization_endpoint))
    const asked = {
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
      prompt: 'none',
      state: 'check',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
    const answer = await fetch(url, { redirect: 'manual', signal, headers })
    await answer.body?.cancel()
    if (answer.status < 300 || answer.status >= 500) throw new Error(`status ${answer.status}`)
    return { kind: answer.status < 400 ? 'begins' : 'refused', reason: `status ${answer.status}` }
  } catch (err) {
    return { kind: 'unknown', reason: messageOf(err) }
  }
}

/** The sidecar's own address that an issuer must know. `name`: the provider's; empty: there is only one provider. */
export const sidecarAddress = (publicUrl: string, path: string, name: string): string =>
  `${publicUrl.replace(/\/+$/, '')}/.portcullis/${path}${name === '' ? '' : `/${name}`}`
