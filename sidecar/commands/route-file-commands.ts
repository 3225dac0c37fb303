/** The commands about a route file: `init`, `schema`, `check`, `routes`, `test` and `openapi`. Their parts are loaded when they run. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { coloured } from '../../pdp/shared/process/command/output.ts'
import { ConfigError, runCommand } from '../../pdp/shared/process/exit.ts'
import { type LoadedConfig, loadConfig, loadRouteFile, PLATFORM_OPTION, readPlatform } from '../config/config.ts'
import { addExplain } from './explain-command.ts'
import type { FirstRouteFile } from './init.ts'
import { readToken } from './token-file.ts'

type Form = { readonly json?: true }
/** `platform`: the file or text in which a platform sets the PDP and the issuers. */
type Platformed = Form & { readonly platform?: string }
type InitOptions = Form & { readonly openapi?: string; readonly mcp?: string }
type CheckOptions = Platformed & { readonly strict?: true; readonly pdp?: true; readonly token?: string }
const JSON_OPTION = ['--json', 'print JSON'] as const

export function addRouteFileCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('init [file]')
    .description('Write a first route file (default: portcullis.yaml). Never overwrites a file.')
    .option('--openapi <path>', 'an OpenAPI document: each operation becomes a route, with tests')
    .option('--mcp <url>', 'a running MCP server: each of its tools gets a rule, which allows nobody yet')
    .option(...JSON_OPTION)
    .action((path: string | undefined, options: InitOptions) =>
      runCommand(() => init(path ?? 'portcullis.yaml', options, io), io),
    )
  program
    .command('schema')
    .description('Print the JSON Schema of route files, by which editors complete and check them.')
    .action(() => runCommand(() => printSchema(io), io))
  program
    .command('check <file>')
    .description('Report every error in a route file (exit status 64 if there is any), and warn about similar routes.')
    .option('--strict', 'also name lists that show everything to everybody; exit with 1 if there is a warning')
    .option('--pdp', 'also warn of relations and permissions that the PDP does not know; needs --token')
    .option('--token <file>', 'a file with an access token of any organization (- means standard input)')
    .option(...PLATFORM_OPTION)
    .option(...JSON_OPTION)
    .action((path: string, options: CheckOptions) => runCommand(() => check(path, options, io), io))
  program
    .command('routes <file>')
    .description('List the routes of a route file, most specific first.')
    .option(...PLATFORM_OPTION)
    .option(...JSON_OPTION)
    .action((path: string, form: Platformed) => runCommand(() => listRoutes(path, form, io), io))
  program
    .command('test <file>')
    .description('Run the tests in the route file (exit status 1 if a test fails).')
    .option(...PLATFORM_OPTION)
    .option(...JSON_OPTION)
    .action((path: string, form: Platformed) => runCommand(() => test(path, form, io), io))
  program
    .command('openapi <file>')
    .description(
      'Print the routes of a route file as an OpenAPI document with AuthZEN mappings, which init --openapi reads. Standard error names the routes that such a document cannot express.',
    )
    .action((path: string) => runCommand(() => printOpenApi(path, io), io))
  addExplain(program, io)
}

async function firstFile({ openapi, mcp }: InitOptions, schema: string): Promise<FirstRouteFile> {
  const [{ firstRouteFile, firstMcpRouteFile }, { readOpenApi }, { readMcpServer }] = await Promise.all([
    import('./init.ts'),
    import('./openapi.ts'),
    import('./mcp-server.ts'),
  ])
  if (mcp === undefined)
    return firstRouteFile(openapi === undefined ? null : readOpenApi(readText(openapi), openapi), schema)
  if (openapi !== undefined) throw new ConfigError(['init takes either --openapi or --mcp'])
  return firstMcpRouteFile(await readMcpServer(mcp), schema)
}

async function init(path: string, options: InitOptions, io: NodeJS.Process): Promise<void> {
  const { json } = options
  const { text, leftOut } = await firstFile(options, schemaNear(path))
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (err) {
    const advice = existsSync(path) ? '; init overwrites nothing: give another name, such as init other.yaml' : ''
    throw new ConfigError([`${fileProblem(path, err, 'written')}${advice}`])
  }
  if (json === true) return print({ file: path, left_out: leftOut }, io)
  const what = options.mcp === undefined ? 'route' : 'rule'
  for (const reason of leftOut) io.stdout.write(`${path}: warning: no ${what} for ${reason}\n`)
  io.stdout.write(
    `${path}: written. Next: portcullis-sidecar check ${path}; portcullis-sidecar test ${path}; portcullis setup ORGANIZATION ${path}\n`,
  )
}

/** The schema of the installed sidecar. Within the project's folder the path is relative, so that it is valid on other machines, too. */
function schemaNear(path: string): string {
  const schema = fileURLToPath(new URL('../route-file/route-file.schema.json', import.meta.url))
  const near = relative(dirname(resolve(path)), schema)
  return near.startsWith('..') ? schema : `./${near}`
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([fileProblem(path, err)])
  }
}

async function printSchema(io: NodeJS.Process): Promise<void> {
  const { routeFileSchema } = await import('../route-file/format.ts')
  io.stdout.write(`${JSON.stringify(routeFileSchema(), null, 2)}\n`)
}

async function printOpenApi(path: string, io: NodeJS.Process): Promise<void> {
  const { openApiDocument } = await import('./openapi-document.ts')
  const { text, leftOut } = openApiDocument(loadRouteFile(path))
  io.stdout.write(text)
  for (const reason of leftOut) io.stderr.write(`${path}: warning: no operation for ${reason}\n`)
}

async function check(path: string, options: CheckOptions, io: NodeJS.Process): Promise<void> {
  const { strict, pdp, token, json } = options
  const platform = readPlatform(options.platform)
  if (pdp !== undefined && token === undefined)
    throw new ConfigError([
      '--pdp needs --token: portcullis token -o ORGANIZATION | portcullis-sidecar check FILE --pdp --token -',
    ])
  const file = loadRouteFile(path, platform)
  const { routes, tests } = file
  const ids = [...new Set(routes.map(({ id }) => id))]
  const { servedHosts } = await import('../route-file/served-hosts.ts')
  const { fileWarnings } = await import('../route-file/warnings.ts')
  const unknown = pdp === undefined ? [] : await pdpWarningsOf(loadConfig(path, { platform }), token ?? '')
  const lists = strict === true ? (await import('../route-file/open-lists.ts')).openLists(file) : []
  const warnings = [...fileWarnings(file), ...lists, ...unknown]
  if (strict === true && warnings.length > 0) io.exitCode = 1
  const hosts = servedHosts(file)
  if (json === true)
    return print({ file: path, valid: true, routes: ids.length, tests: tests.length, hosts, warnings }, io)
  for (const warning of warnings) io.stdout.write(`${path}: ${coloured('warning', 'yellow', io)}: ${warning}\n`)
  io.stdout.write(
    `${path}: ${coloured('valid', 'green', io)}, ${counted(ids, 'route')}, ${counted(tests, 'test')}, hosts: ${hosts.join(', ')}\n`,
  )
}

async function pdpWarningsOf(config: LoadedConfig, token: string): Promise<string[]> {
  const { pdpWarnings } = await import('./check-pdp.ts')
  return pdpWarnings(config, { token: readToken(token), readToken })
}

async function listRoutes(path: string, { json, platform }: Platformed, io: NodeJS.Process): Promise<void> {
  const { describeRoutes, orderedRoutes } = await import('./route-report.ts')
  const file = loadRouteFile(path, readPlatform(platform))
  if (json !== true) return void io.stdout.write(`${describeRoutes(file).join('\n')}\n`)
  print(
    orderedRoutes(file).map(({ id, check: asked }) => ({ route: id, public: asked === null })),
    io,
  )
}

async function test(path: string, { json, platform }: Platformed, io: NodeJS.Process): Promise<void> {
  const { describeReport, runRouteTests } = await import('./route-report.ts')
  const report = await runRouteTests(loadRouteFile(path, readPlatform(platform)), path)
  if (json === true) print(report, io)
  else io.stdout.write(`${describeReport(report).join('\n')}\n`)
  if (report.failed > 0) io.exitCode = 1
}

const print = (value: unknown, io: NodeJS.Process): void => void io.stdout.write(`${JSON.stringify(value, null, 2)}\n`)

const counted = ({ length }: { readonly length: number }, what: string): string =>
  `${length} ${what}${length === 1 ? '' : 's'}`
