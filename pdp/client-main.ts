/** Starts the command `portcullis` from source: `node pdp/client-main.ts`. */
import { keepCompiled } from './shared/process/command/compiled.ts'

keepCompiled()
const { runClientCli } = await import('./client-cli.ts')
await runClientCli(process)
