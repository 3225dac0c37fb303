/** `npm run bench -- sidecar [SECONDS]`: the sidecar beside a bare proxy, same upstream, same run. Needs nginx and wrk. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { exportJWK } from 'jose'
import { Pool } from 'undici'
import { createProofVerifier } from '../../pdp/token/dpop.ts'
import { startFrameworks } from '../sidecar/fuzz/frameworks.ts'
import { createIssuer, ecKeys, proof, thumbprint } from '../sidecar/support/issuer.ts'
import { startKeyServer, startProcess } from '../sidecar/support/process.ts'
import { atRate, fullSpeed, type Load } from './sidecar-load.ts'

const RESOURCE = 'https://app.test'
const ISSUER = 'https://as.test'
const PROOFS = 4_000

export async function bench([words]: readonly string[]): Promise<void> {
  const seconds = Number(words ?? 6)
  const issuer = await createIssuer({ issuer: ISSUER, audience: RESOURCE, clock: Date.now })
  const keyServer = await startKeyServer([{ keys: [{ ...(await exportJWK(issuer.keys.publicKey)), kid: 'k1' }] }])
  const services = await startFrameworks(['/invoices/{id}', '/public'])
  const nginx = services.find(({ name }) => name === 'nginx')
  if (nginx === undefined) throw new Error('nginx is not installed (Debian: nginx-light)')
  const pdp = await child('sidecar-pdp.ts')
  const bare = await child('sidecar-bare-proxy.ts', nginx.origin)
  const routeFile = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    issuers: [{ issuer: ISSUER, jwks_uri: keyServer.urls[0] }],
    upstream: nginx.origin,
    pdp: { address: `127.0.0.1:${pdp.port}`, insecure: true },
    routes: { 'GET /invoices/{id}': 'viewer invoice:{id}', 'GET /public': 'public' },
  })
  const command = process.env.SIDECAR_MAIN
  const sidecar = await startProcess({
    routeFile,
    ...(command !== undefined && {
      command: [process.execPath, ...(process.env.SIDECAR_FLAGS ?? '--max-semi-space-size=4').split(' '), command],
    }),
  })
  try {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    console.log(`ready after ${sidecar.readyMs.toFixed(0)} ms, idle ${sidecar.memory().nowMb.toFixed(1)} MB`)
    const token = await issuer.token()
    const fields = { Host: 'app.test', Authorization: `Bearer ${token}` }
    const direct: Load = { port: bare.port, path: '/invoices/1', fields }
    const full: Load = { ...direct, port: sidecar.port }
    for (const load of [direct, full]) fullSpeed(load, 2)
    const speeds = { bare: fullSpeed(direct, seconds), full: fullSpeed(full, seconds) }
    const open = fullSpeed({ ...full, path: '/public' }, seconds)
    console.log(
      `bare proxy ${speeds.bare.toFixed(0)}/s, full enforcement ${speeds.full.toFixed(0)}/s, public ${open.toFixed(0)}/s`,
    )
    console.log(`full enforcement is ${(speeds.full / speeds.bare).toFixed(2)} of the bare proxy`)
    console.log(`under load ${sidecar.memory().peakMb.toFixed(1)} MB at most`)
    const [base, ours] = [await atRate(direct, 500, seconds), await atRate(full, 500, seconds)]
    console.log(
      `at 500/s: bare p50 ${base.p50.toFixed(2)} ms, full p50 ${ours.p50.toFixed(2)} ms, p99 ${ours.p99.toFixed(2)} ms`,
    )
    await benchProofs(sidecar.port, issuer)
  } finally {
    await sidecar.stop()
    for (const { process: one } of [pdp, bare]) one.kill('SIGKILL')
    await Promise.all(services.map(({ close }) => close()))
    keyServer.close()
  }
}

/** Proofs are made before, since making them costs as much as verifying. */
async function benchProofs(port: number, issuer: Awaited<ReturnType<typeof createIssuer>>): Promise<void> {
  const keys = ecKeys()
  const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
  const make = () => proof({ keys, method: 'GET', url: `${RESOURCE}/invoices/1`, token, clock: Date.now })
  const proofs = await Promise.all(Array.from({ length: PROOFS }, make))
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 32, pipelining: 1 })
  const queue = [...proofs]
  const startedMs = performance.now()
  const worker = async (): Promise<void> => {
    for (let one = queue.pop(); one !== undefined; one = queue.pop()) {
      const headers = { Host: 'app.test', Authorization: `DPoP ${token}`, DPoP: one }
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/invoices/1', headers })
      if (statusCode >= 300) throw new Error(`a proof was answered with ${statusCode}`)
      await body.dump()
    }
  }
  await Promise.all(Array.from({ length: 32 }, worker))
  const rate = PROOFS / ((performance.now() - startedMs) / 1_000)
  await pool.close()
  const alone = await verifyAlone(
    await Promise.all(Array.from({ length: 1_000 }, make)),
    token,
    await thumbprint(keys.publicKey),
  )
  console.log(
    `DPoP: ${rate.toFixed(0)}/s, ${(rate / alone).toFixed(2)} of verifying proofs alone (${alone.toFixed(0)}/s)`,
  )
}

async function verifyAlone(proofs: readonly string[], token: string, jkt: string): Promise<number> {
  const verify = createProofVerifier({ clock: Date.now, replay: { remember: () => true } })
  const { createHash } = await import('node:crypto')
  const digest = createHash('sha256').update(token).digest('base64url')
  const startedMs = performance.now()
  for (const one of proofs)
    await verify({ proofs: [one], method: 'GET', url: `${RESOURCE}/invoices/1` }, { digest, jkt })
  return proofs.length / ((performance.now() - startedMs) / 1_000)
}

async function child(file: string, ...words: string[]): Promise<{ process: ChildProcess; port: number }> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const started = spawn(process.execPath, [path, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve, reject) => {
    started.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)))
    started.stdout?.on('data', (chunk) => {
      const match = /port (\d+)/.exec(String(chunk))
      if (match !== null) resolve(Number(match[1]))
    })
  })
  return { process: started, port }
}
