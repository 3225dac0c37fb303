/** Starts the sidecar from its source: `node sidecar/main.ts`. */
import { runSidecarCli } from './cli.ts'

await runSidecarCli(process)
