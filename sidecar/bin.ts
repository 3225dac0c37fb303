#!/usr/bin/env -S node --max-semi-space-size=8 --max-old-space-size=256
/** The installed command `portcullis-sidecar`. Prints an error if Node.js is too old. */
// The flags: the first is explained in pdp/shared/process/command/node-flags.ts. The second bounds the old space, so that V8 collects it
// early: without a bound, 60 MB of garbage stay. In containers, node is started with a bound relative to their memory limit
// (injector/pod/sidecar-container.ts).
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 24 || (major === 24 && minor >= 18)) {
  // Loaded only here: an older Node.js could not parse the file, and must print the message below.
  import('./cli.ts').then(({ runSidecarCli }) => runSidecarCli(process))
} else {
  process.stderr.write(`portcullis-sidecar needs Node.js 24.18 or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}
