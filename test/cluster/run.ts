/** `npm run test:cluster`: the injector and the chart against a real kube-apiserver and etcd. */
import { startVitest } from 'vitest/node'
import { findOrBuild } from './binaries.ts'

const binaries = findOrBuild(process.env)
if ('missing' in binaries) {
  console.error(
    `not run: ${binaries.missing.join(', ')} missing; install Go and run this again, or set KUBEBUILDER_ASSETS to a folder with them (etcd is Debian's etcd-server)`,
  )
  process.exitCode = 1
} else {
  const vitest = await startVitest('test', process.argv.slice(2), {
    config: false,
    watch: false,
    include: ['test/cluster/**/*.suite.ts'],
    experimental: { viteModuleRunner: false },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // In CI a stall of a shared machine must not fail a change. The report prints `(retry x1)`: that is a fault to mend, too.
    retry: process.env.CI === undefined ? 0 : 1,
    pool: 'forks',
    fileParallelism: false,
    reporters: ['verbose'],
    provide: { binaries },
  })
  await vitest.close()
}
