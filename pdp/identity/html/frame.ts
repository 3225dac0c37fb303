/** The parts that every page of one request shares: language, brand, the application, and the request id for the log. */
import type { IncomingMessage } from 'node:http'
import type { Client } from 'oidc-provider'
import { INVISIBLE } from '../../shared/base/invisible.ts'
import { type Brand, type Branding, createBrand, webUrl } from '../../shared/pages/brand.ts'
import { mountOf } from '../oauth/paths.ts'
import { type Context, paramsOf } from '../oauth/request.ts'
import { type Words, words } from './words/words.ts'

/** The application that the page is about (RFC 7591 section 2). */
export type Application = {
  readonly name: string
  readonly logo?: URL
  readonly terms?: string
  readonly privacy?: string
}
export type Frame = {
  readonly words: Words
  readonly issuer: string
  /** The issuer's path, a prefix of all pages' paths. */
  readonly mount: string
  readonly requestId: string
  readonly brand: Brand
  readonly application: Application | null
  /** True: people can sign in with passkeys. */
  readonly passkeys: boolean
}
/** `uiLocales`: the parameter of the authorization request that the page belongs to. */
export type FrameOf = (
  req: Pick<IncomingMessage, 'headers' | 'url'>,
  about?: { readonly uiLocales?: string | undefined; readonly client?: Client | undefined },
) => Frame

export function createFrames(issuer: string, branding: Branding = {}, passkeys = false): FrameOf {
  const brand = createBrand(branding)
  const mount = mountOf(issuer)
  return (req, { uiLocales, client } = {}) => ({
    words: words(req, uiLocales),
    // The handler of the routes has set this field.
    requestId: [req.headers['x-request-id']].flat()[0] ?? '',
    brand,
    issuer,
    mount,
    passkeys,
    application: client === undefined ? null : applicationOf(client),
  })
}

/** The frame of a page for oidc-provider, which after an error may have read no parameters yet. */
export const frameForContext = (
  frameOf: FrameOf,
  { req, oidc }: Pick<Context, 'req'> & { oidc?: Context['oidc'] },
): Frame => frameOf(req, { uiLocales: oidc === undefined ? undefined : paramsOf(oidc).ui_locales })

/** The client's name for people. A client without registration can choose any name, so its host is added. */
export function nameOf({
  clientName,
  clientId,
  portcullis_document: isFromDocument,
}: Pick<Client, 'clientName' | 'clientId' | 'portcullis_document'>): string {
  // A name without anything to see would leave the person alone with its permissions.
  if (clientName === undefined || clientName.replaceAll(INVISIBLE, '').trim() === '') return clientId
  if (!isFromDocument) return clientName
  return `${clientName} (${new URL(clientId).host})`
}

/** A tenant's client shows no logo: it could imitate an application in which people trust. */
export function applicationOf(client: Client): Application {
  const { logoUri, tosUri, policyUri } = client
  const logo = client.portcullis_organization === null ? webUrl(logoUri) : null
  const [terms, privacy] = [webUrl(tosUri), webUrl(policyUri)]
  return {
    name: nameOf(client),
    ...(logo === null ? {} : { logo }),
    ...(terms === null ? {} : { terms: terms.href }),
    ...(privacy === null ? {} : { privacy: privacy.href }),
  }
}
