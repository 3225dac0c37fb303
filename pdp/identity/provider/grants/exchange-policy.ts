/** Decides which clients may exchange whose tokens for which resources (RFC 8693 section 5). Everything else is refused. */
import { type Client, errors } from 'oidc-provider'
import type { Directory } from '../../../engine/store/directory.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { mayActIn } from '../../issuer/tokens/bindings.ts'
import type { Resources } from '../../issuer/tokens/resources.ts'
import type { TokenRecord } from '../../issuer/tokens/token-state.ts'

export type ExchangePolicyDeps = {
  readonly directory: Pick<Directory, 'client'>
  readonly resources: Resources
  readonly pdp: Pick<Pdp, 'ancestors'>
}
export type Exchange = { readonly client: Client; readonly subject: TokenRecord; readonly resource: string }

/**
 * Allows a client's own tokens, tokens sent to its app, and tokens of clients in its registration; for the token's own audience and for
 * resources in the registration. Throws InvalidRequest and InvalidTarget (RFC 8693 section 2.2.2).
 */
export async function requireExchange(deps: ExchangePolicyDeps, exchange: Exchange): Promise<void> {
  if (!(await isTheirs(deps, exchange))) {
    throw new errors.InvalidRequest('the client may not exchange tokens of this client: name it in exchange_clients')
  }
  const { client, subject, resource } = exchange
  if (subject.audiences.includes(resource) || client.portcullis_exchange_resources.includes(resource)) return
  throw new errors.InvalidTarget('the client may not exchange for this resource: name it in exchange_resources')
}

async function isTheirs(deps: ExchangePolicyDeps, { client, subject }: Exchange): Promise<boolean> {
  if (subject.clientId === client.clientId) return true
  const own = client.portcullis_organization
  if (own === null && (await wasSentTo(deps, client, subject))) return true
  if (!client.portcullis_exchange_clients.includes(subject.clientId)) return false
  if (own === null) return true
  // The registration of a tenant's client counts only for clients in its own organizations.
  const owner = await deps.directory.client(subject.clientId)
  return owner !== null && (await mayActIn(deps.pdp, own, owner.organization))
}

/** True if the client is the resource server that the token is for. A tenant's client may name any app as its own, so it does not count. */
async function wasSentTo({ resources }: ExchangePolicyDeps, client: Client, subject: TokenRecord): Promise<boolean> {
  const [audience] = subject.audiences
  if (client.portcullis_app === null || audience === undefined) return false
  return (await resources.owner(audience)) === client.portcullis_app
}
