/** Starts the sidecar from its source: `node sidecar/main.ts`. */
import { keepCompiled } from '../pdp/shared/process/command/compiled.ts'

keepCompiled()
const { runSidecarCli } = await import('./cli.ts')
await runSidecarCli(process)
