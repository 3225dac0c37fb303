/** Starts the command `portcullis` from source: `node pdp/client-main.ts`. */
import { runClientCli } from './client-cli.ts'

await runClientCli(process)
