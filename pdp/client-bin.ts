#!/usr/bin/env node
/** The installed command `portcullis`: ends with a message on a Node that is too old for the rest. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 20 || (major === 20 && minor >= 19)) {
  // Imported only now: an older Node could not even read it.
  import('./client-cli.ts').then(({ runClientCli }) => runClientCli(process))
} else {
  process.stderr.write(`portcullis needs Node.js 20.19 or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}
