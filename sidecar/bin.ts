#!/usr/bin/env -S node --max-semi-space-size=4 --max-old-space-size=256
/** The installed command `portcullis-sidecar`: on a Node that is too old for the rest, it says so and ends. */
// The flags: a proxy's garbage is young and small, and 4 MiB for it instead of 16 saves 10 MB of every pod's memory. With a
// bound of its own, far above what it needs, V8 collects old garbage early: without, it lets 60 MB of it lie.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 24 || (major === 24 && minor >= 18)) {
  // Imported only now: an older Node could not even read it.
  import('./cli.ts').then(({ runSidecarCli }) => runSidecarCli(process))
} else {
  process.stderr.write(`portcullis-sidecar needs Node.js 24.18 or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}
