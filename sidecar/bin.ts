#!/usr/bin/env -S node --max-semi-space-size=4
/** The installed command `portcullis-sidecar`: on a Node that is too old for the rest, it says so and ends. */
// The flag: a proxy's garbage is young and small, and 4 MiB for it instead of 16 saves 10 MB of every pod's memory.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 24 || (major === 24 && minor >= 18)) {
  // Imported only now: an older Node could not even read it.
  import('./cli.ts').then(({ runSidecarCli }) => runSidecarCli(process))
} else {
  process.stderr.write(`portcullis-sidecar needs Node.js 24.18 or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}
