/** Starts the PDP from source: `node pdp/main.ts`. */
import { keepCompiled } from './shared/process/command/compiled.ts'

keepCompiled()
const { runPdpCli } = await import('./cli.ts')
await runPdpCli(process)
