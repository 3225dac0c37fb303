/** Starts the PDP from source: `node pdp/main.ts`. */
import { runPdpCli } from './cli.ts'

await runPdpCli(process)
