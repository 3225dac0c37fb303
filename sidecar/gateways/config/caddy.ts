/** Prints a Caddyfile that asks the door about every request. */

import { exactNames, prefixes } from '../../http/cleared.ts'
import { AUTHORIZE_PATH, answerFields, CALLER_FIELD } from '../../http/door-fields.ts'
import { type ConfigFile, CREDENTIALS, type DoorAccess, type GatewayPlan, type HostAndPort, written } from '../plan.ts'

export function caddyConfig(plan: GatewayPlan): readonly ConfigFile[] {
  const { forwardToken, service } = plan
  const scheme = service.tls ? 'https://' : service.http2 ? 'h2c://' : ''
  const lines = [
    `# Every host: the door answers for those that it does not serve. With TLS: the names of the hosts instead.`,
    `http://:${plan.listen.port} {`,
    ...(plan.listen.host === '0.0.0.0' ? [] : [`\tbind ${plan.listen.host}`]),
    '\t# In this order, which Caddy would otherwise choose itself.',
    '\troute {',
    '\t\t# Fields that services believe, and names with characters that some read as a dash.',
    ...clearedNames(plan).map((name) => `\t\trequest_header -${name}`),
    `\t\tforward_auth ${upstream(plan.door)} {`,
    `\t\t\turi ${AUTHORIZE_PATH}`,
    ...doorLines(plan.door),
    `\t\t\tcopy_headers ${[...answerFields(plan.headers.identity), ...(forwardToken ? CREDENTIALS : [])].map(written).join(' ')}`,
    '\t\t}',
    `\t\treverse_proxy ${scheme}${authority(service)} {`,
    ...(forwardToken ? [] : CREDENTIALS.map((name) => `\t\t\theader_up -${written(name)}`)),
    ...(service.tls ? ['\t\t\theader_up Host {http.request.host}'] : []),
    '\t\t}',
    '\t}',
    '}',
    '',
  ]
  return [{ name: 'Caddyfile', text: lines.join('\n') }]
}

function clearedNames({ headers }: GatewayPlan): readonly string[] {
  const tokens: readonly string[] = CREDENTIALS
  const starts = prefixes(headers)
  const identity = headers.identity?.map(({ name }) => name) ?? []
  const exact = [...exactNames(headers), ...identity].filter(
    (name) => !tokens.includes(name) && !starts.some((start) => name.startsWith(start)),
  )
  return [...starts.map((start) => `${written(start)}*`), ...exact.map(written), '*_*', '*.*']
}

function doorLines(door: DoorAccess): string[] {
  if (door.kind === 'unix') return []
  const secret = door.secretFile === null ? [] : [`\t\t\theader_up ${written(CALLER_FIELD)} {file.${door.secretFile}}`]
  if (door.kind === 'plain') return secret
  return [
    ...secret,
    '\t\t\ttransport http {',
    '\t\t\t\ttls',
    ...(door.client === null ? [] : [`\t\t\t\ttls_client_auth ${door.client.cert} ${door.client.key}`]),
    `\t\t\t\ttls_trust_pool file ${door.ca}`,
    `\t\t\t\ttls_server_name ${door.at.host}`,
    '\t\t\t}',
  ]
}

const upstream = (door: DoorAccess): string => (door.kind === 'unix' ? `unix/${door.path}` : authority(door.at))
const authority = ({ host, port }: HostAndPort): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
