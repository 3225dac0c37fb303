/** Starts the sidecar from source: `node sidecar/main.ts`. */
import { runSidecarCli } from './cli.ts'

await runSidecarCli(process)
