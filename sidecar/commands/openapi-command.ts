/** The command `openapi`: writes the routes of a route file as an OpenAPI document. */
import type { Command } from 'commander'
import { runCommand } from '../../pdp/shared/process/exit.ts'
import { loadRouteFile } from '../config/config.ts'

type Io = NodeJS.Process

export function addOpenApi(program: Command, io: Io): void {
  program
    .command('openapi <file>')
    .description(
      'Print the routes of a route file as an OpenAPI document with AuthZEN mappings, which init --openapi reads. Standard error names the routes that such a document cannot express.',
    )
    .action((path: string) => runCommand(() => print(path, io), io))
}

async function print(path: string, io: Io): Promise<void> {
  const { openApiDocument } = await import('./openapi-document.ts')
  const { text, leftOut } = openApiDocument(loadRouteFile(path))
  io.stdout.write(text)
  for (const reason of leftOut) io.stderr.write(`${path}: warning: no operation for ${reason}\n`)
}
