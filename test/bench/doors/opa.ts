/** Open Policy Agent with its plugin for Envoy, with a policy that decides what the benchmarked route decides. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../sidecar/support/harness.ts'
import { freePort, isOpen } from '../../support/free-port.ts'
import { RESOURCE } from '../sidecar-pdp.ts'

export type Opa = { readonly port: number; stop(): Promise<void> }

/**
 * Verifies the token by the issuer's keys, which it holds, and looks the relationship up in data that it holds as well: nothing
 * is asked elsewhere, so a revoked token or a changed relationship is not seen.
 */
const POLICY = `package envoy.authz

import rego.v1

default allow := false

allow if {
  http := input.attributes.request.http
  http.method == "GET"
  ["invoices", id] = input.parsed_path
  startswith(http.headers.authorization, "Bearer ")
  token := substring(http.headers.authorization, 7, -1)
  [valid, _, claims] := io.jwt.decode_verify(token, {"cert": data.keys, "iss": data.issuer, "aud": "${RESOURCE}"})
  valid
  data.tuples[sprintf("invoice:%s#viewer@service:%s", [id, claims.sub])]
}
`

/** `folder`: of its own, for its files. */
export async function startOpa(program: string, { issuer, folder }: { issuer: string; folder: string }): Promise<Opa> {
  const discovery = await fetch(`${issuer}/.well-known/openid-configuration`)
  const { jwks_uri: uri }: { jwks_uri?: string } = Object(await discovery.json())
  const keys = await (await fetch(uri ?? '')).text()
  const tuples = { 'invoice:1#viewer@service:bench': true }
  writeFileSync(join(folder, 'data.json'), JSON.stringify({ issuer, keys, tuples }))
  writeFileSync(join(folder, 'policy.rego'), POLICY)
  const [port, http, diagnostics] = await Promise.all([freePort(), freePort(), freePort()])
  const settings = [`addr=127.0.0.1:${port}`, 'path=envoy/authz/allow'].flatMap((setting) => [
    '--set',
    `plugins.envoy_ext_authz_grpc.${setting}`,
  ])
  const addresses = ['--addr', `127.0.0.1:${http}`, '--diagnostic-addr', `127.0.0.1:${diagnostics}`]
  const words = ['run', '--server', ...addresses, '--log-level', 'error', ...settings, 'policy.rego', 'data.json']
  const child = spawn(program, words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  await until(async () => child.exitCode !== null || (await isOpen(port)))
  if (child.exitCode !== null) throw new Error(`OPA ended with ${child.exitCode}`)
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}
