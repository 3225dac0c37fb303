/** `check --pdp`: finds relations and permissions of a route file that no model or role of the PDP has. */
import { create } from '@bufbuild/protobuf'
import { credentials, Metadata } from '@grpc/grpc-js'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { openPdpConnection } from '../../pdp/shared/client/connection.ts'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { serviceDefinition } from '../../pdp/shared/process/grpc/service.ts'
import { parseJws, TOKEN_CHARS_MAX } from '../../pdp/shared/token/jws.ts'
import { sidecarAddress, signInVerdict } from '../../pdp/shared/token/sign-in-refusal.ts'
import { DecideRequestSchema, type DecideResponse, DecisionService } from '../../proto/gen/portcullis/v1/decision_pb.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { PermissionQuestion } from '../pdp-client/question.ts'
import type { Check } from '../routes/checks.ts'

const WAIT_MS = 5_000
/** How many checks one question to the PDP has. */
const CHECKS_MAX = 256
const PERMISSION = 'permission '
const { decide: DECIDE } = serviceDefinition(DecisionService)

export type PdpCheckDeps = {
  /** An active access token with an organization. Questions are about its subject; answers do not matter, only errors in them. */
  readonly token: string
  readonly readToken: (path: string) => string
}

/** One sentence for each name that the PDP does not know. Throws StartError if it does not answer, or the token is not active. */
export async function pdpWarnings(config: LoadedConfig, deps: PdpCheckDeps): Promise<string[]> {
  const found = new Map<string, { readonly route: string; readonly question: PermissionQuestion }>()
  const first = await ask(config, deps, [])
  for (const { id, check } of config.file.routes)
    for (const { text, question } of check === null ? [] : questionsOf(check, first.organization))
      if (!found.has(text)) found.set(text, { route: id, question })
  const warnings: string[] = []
  const { resource } = config.file
  // A token for an app shows only the roles of this app.
  const isForResource = [parseJws(deps.token, TOKEN_CHARS_MAX)?.payload.aud].flat().includes(resource)
  const asked = [...found]
  for (let at = 0; at < asked.length; at += CHECKS_MAX) {
    const part = asked.slice(at, at + CHECKS_MAX)
    const { permissions } = await ask(
      config,
      deps,
      part.map(([, { question }]) => question),
    )
    for (const [index, [text, { route }]] of part.entries())
      if (permissions[index]?.reasonCode === 'unknown_relation')
        warnings.push(
          text.startsWith(PERMISSION) && !isForResource
            ? `${route} asks ${text}, which this token cannot tell: it is not for ${resource}, so that roles of the app do not count. Get one that is: portcullis token --resource ${resource}`
            : `${route} asks ${text}, which no model or role of the PDP has: it is always denied`,
        )
  }
  return [...warnings, ...(await signInWarnings(config))]
}

/** Warnings of issuers that refuse the file's client, as a browser would see. An issuer that cannot be reached gives no warning. */
async function signInWarnings({ file: { signIn, publicUrl } }: LoadedConfig): Promise<readonly string[]> {
  const asked = (signIn?.providers ?? []).map(async ({ issuer, clientId, name }) => {
    const redirectUri = sidecarAddress(publicUrl, 'callback', name)
    const verdict = await signInVerdict({ issuer, clientId, redirectUri })
    if (verdict.kind !== 'refused') return []
    return [
      `sign_in: ${issuer} does not know client ${clientId}, or not its redirect URI ${redirectUri} (${verdict.reason})`,
    ]
  })
  return (await Promise.all(asked)).flat()
}

/** Questions about any resource of the type; but those about organizations need the token's organization, and about apps the app's id. */
function questionsOf(
  check: Check,
  organization: string,
): readonly { readonly text: string; readonly question: PermissionQuestion }[] {
  switch (check.kind) {
    case 'all':
    case 'any':
      return check.of.flatMap((part) => questionsOf(part, organization))
    case 'relation': {
      const { relation, type, id } = check
      const isLiteral = id.every((part) => typeof part === 'string')
      if (type !== 'organization' && type !== 'app')
        return [{ text: `${relation} ${type}`, question: { relation, resource: `${type}:any` } }]
      // The permissions of an app are unknown here if only the request names the app.
      if (type === 'app' && !isLiteral) return []
      const resource = `${type}:${isLiteral ? id.join('') : organization}`
      return [{ text: `${relation} ${isLiteral ? resource : type}`, question: { relation, resource } }]
    }
    case 'permission':
      return [
        {
          text: `${PERMISSION}${check.key}`,
          question: { relation: check.key, resource: `organization:${organization}` },
        },
      ]
    default:
      return []
  }
}

async function ask(
  { file, certificates }: LoadedConfig,
  { token, readToken }: PdpCheckDeps,
  permissions: readonly PermissionQuestion[],
): Promise<DecideResponse> {
  const { addresses, insecure, tokenFile } = file.pdp
  const [address = ''] = addresses
  const { ca, cert, key } = certificates.pdp
  const secure = insecure ? credentials.createInsecure() : credentials.createSsl(ca, key, cert)
  const connection = openPdpConnection(address, secure)
  const metadata = new Metadata()
  if (tokenFile !== null) metadata.set('authorization', `Bearer ${readToken(tokenFile)}`)
  const request = create(DecideRequestSchema, { token, permissions: [...permissions] })
  try {
    const answer = await new Promise<DecideResponse>((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = DECIDE
      const options = { deadline: Date.now() + WAIT_MS }
      connection.client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        options,
        (err, found) => (found === undefined ? reject(err ?? new Error('no answer')) : resolve(found)),
      )
    })
    if (!answer.active) throw new StartError('The PDP says that the token is not active')
    if (answer.organization === '')
      throw new StartError(
        'The token has no organization, so the PDP answers no questions with it. Get one that has an organization: portcullis token -o ORGANIZATION',
      )
    return answer
  } catch (err) {
    if (err instanceof StartError) throw err
    throw new StartError(`The PDP at ${address} did not answer: ${messageOf(err)}`)
  } finally {
    connection.close()
  }
}
