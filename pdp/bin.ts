#!/usr/bin/env -S node --max-semi-space-size=16
/** The installed command `portcullis-pdp`: ends with a message on a Node that is too old for the rest. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 24 || (major === 24 && minor >= 18)) {
  // Imported only now: an older Node could not even read it.
  import('./cli.ts').then(({ runPdpCli }) => runPdpCli(process))
} else {
  process.stderr.write(`portcullis-pdp needs Node.js 24.18 or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}
