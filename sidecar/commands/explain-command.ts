/** The command `explain`: the route of a request, the questions to the PDP, and with a token their answers. */
import type { Command } from 'commander'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'
import { coloured } from '../../pdp/shared/process/command/output.ts'
import { ConfigError, runCommand } from '../../pdp/shared/process/exit.ts'
import { loadConfig, loadRouteFile, PLATFORM_OPTION, readPlatform } from '../config/config.ts'
import type { Explanation } from '../enforce/explain.ts'
import { serviceOf } from '../http/upstream-entry.ts'
import { eachText } from '../routes/answer-rule.ts'
import { checkText } from '../routes/checks.ts'
import type { AskedRequest, TokenDecision } from './explain-token.ts'
import { readToken, unverifiedClaims } from './token-file.ts'

type ExplainOptions = {
  readonly file: string
  readonly claim: string[]
  readonly header: string[]
  readonly body?: string
  readonly token?: string
  readonly from?: string
  readonly platform?: string
  readonly json?: true
}

export function addExplain(program: Command, io: NodeJS.Process): void {
  program
    .command('explain <method> <url>')
    .description(
      'Show which route a request matches and what the PDP is asked. With --token, also ask the PDP and show its decision.',
    )
    .addHelpText(
      'after',
      '\nExit status: 0 the request would be forwarded, 1 it would be denied, 64 an error in the route file or the options.',
    )
    .option('-f, --file <path>', 'the route file', 'portcullis.yaml')
    .option(
      '--claim <name=value>',
      'a claim of the access token; without --claim and --token the request has no token',
      collect,
      [],
    )
    .option('--header <name: value>', 'a header field of the request', collect, [])
    .option('--body <json>', 'the body of the request')
    .option('--from <address>', 'the address of the client')
    .option(
      '--token <file>',
      'a file with an access token (- means standard input); the command contacts the issuer and the PDP',
    )
    .option(...PLATFORM_OPTION)
    .option('--json', 'print JSON')
    .action((method: string, url: string, options: ExplainOptions) =>
      runCommand(() => explain({ method, url }, options, io), io),
    )
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value]

async function explain(
  { method, url }: { method: string; url: string },
  options: ExplainOptions,
  io: NodeJS.Process,
): Promise<void> {
  const { createExplainer } = await import('../enforce/explain.ts')
  const explainer = createExplainer(loadRouteFile(options.file, readPlatform(options.platform)))
  const token = options.token === undefined ? null : readToken(options.token)
  const given = options.claim.map((text) => pair(text, '=', '--claim'))
  const claims = given.length === 0 && token !== null ? Object.entries(unverifiedClaims(token) ?? {}) : given
  const headers = options.header.map((text) => pair(text, ':', '--header'))
  const from = options.from === undefined ? null : parseAddress(options.from)
  if (options.from !== undefined && from === null)
    throw new ConfigError([`--from ${options.from} is not an IP address`])
  const explanation = explainer({
    method: method.toUpperCase(),
    target: url,
    as: claims.length === 0 && token === null ? null : Object.fromEntries(claims),
    headers,
    ...(options.body !== undefined && { body: options.body }),
    from,
  })
  const lines = describeExplanation(explanation, { isAsked: token !== null, io })
  if (options.json !== true) io.stdout.write(`${lines.join('\n')}\n`)
  const request = { method: method.toUpperCase(), url, from, headers, body: options.body ?? null }
  const asked = token === null ? null : await ask({ ...request, token }, options)
  if (options.json === true) io.stdout.write(`${JSON.stringify(jsonOf(explanation, asked), null, 2)}\n`)
  else if (asked !== null) {
    const verdict = coloured(asked.verdict, asked.allowed ? 'green' : 'red', io)
    io.stdout.write(`result      ${verdict}\nreason      ${asked.reason}\n`)
  }
  if (asked === null ? explanation.denial !== null : !asked.allowed) io.exitCode = 1
}

async function ask(request: AskedRequest, { file, platform }: ExplainOptions): Promise<TokenDecision> {
  const [{ askAbout }, { commandLineDeps }] = await Promise.all([
    import('./explain-token.ts'),
    import('../runtime/start.ts'),
  ])
  return askAbout(loadConfig(file, { platform: readPlatform(platform) }), request, commandLineDeps())
}

function pair(text: string, mark: string, option: string): [string, string] {
  const at = text.indexOf(mark)
  if (at < 1) throw new ConfigError([`${option} ${JSON.stringify(text)} is not <name>${mark}<value>`])
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

/** The explanation as lines. `isAsked`: a real decision is printed after them, and that decision has the denial. */
function describeExplanation(
  { route, parameters, asks, context, denial, isGuest }: Explanation,
  { isAsked, io }: { readonly isAsked: boolean; readonly io: NodeJS.Process },
): string[] {
  const lines = [`route       ${route?.id ?? 'none'}`]
  for (const [name, value] of parameters) lines.push(`parameter   ${name} = ${value}`)
  if (route?.upstream != null) lines.push(`service     ${serviceOf(route.upstream).trim()}`)
  if (denial !== null && isAsked) return lines
  if (denial !== null)
    return [...lines, `${coloured('denied', 'red', io)}      ${denial.status} ${denial.code}: ${denial.detail}`]
  if (route?.check === null)
    return [...lines, `${coloured('public', 'green', io)}      forwarded without asking the PDP`]
  for (const question of asks) lines.push(`asks        ${question}`)
  for (const [name, value] of Object.entries(context)) lines.push(`context     ${name} = ${JSON.stringify(value)}`)
  const rule = route?.answer
  if (rule != null) lines.push(`keeps       of ${eachText(rule.each)} what ${checkText(rule.keep)} holds for`)
  for (const path of rule?.forget ?? []) lines.push(`forgets     $.${path.join('.')}`)
  if (isGuest) return [...lines, 'as          a guest: only what everybody holds counts (user:*)']
  return asks.length === 0 ? [...lines, 'asks        only whether the access token is active'] : lines
}

/** The explanation as JSON. `allowed`: null if the PDP's answer is needed, but the PDP was not asked. */
function jsonOf(
  { route, parameters, asks, context, denial, isGuest }: Explanation,
  asked: TokenDecision | null,
): object {
  const unasked = denial !== null ? false : route?.check === null || (isGuest && asks.length === 0) ? true : null
  return {
    route: route?.id ?? null,
    parameters: Object.fromEntries(parameters),
    asks,
    context,
    denial: asked?.allowed === true ? null : denial,
    allowed: asked === null ? unasked : asked.allowed,
    ...(asked === null ? {} : { result: asked.verdict, reason: asked.reason }),
  }
}
