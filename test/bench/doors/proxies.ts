/** Proxies that others put in front of a service: they verify the token by the issuer's keys, and ask nobody about the rest. */
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, isOpen } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { RESOURCE } from '../sidecar/pdp.ts'

type Proxy = { readonly port: number; stop(): Promise<void> }
type Place = { readonly program: string; readonly issuer: string; readonly upstream: number; readonly folder: string }

/** Takes access tokens of the issuer instead of its own session. */
export async function startOauth2Proxy({ program, issuer, upstream, folder }: Place): Promise<Proxy> {
  const port = await freePort()
  const settings = {
    'http-address': `127.0.0.1:${port}`,
    upstream: `http://127.0.0.1:${upstream}`,
    provider: 'oidc',
    'oidc-issuer-url': issuer,
    'oidc-extra-audience': RESOURCE,
    'client-id': 'bench',
    'client-secret': 'of-no-value-anywhere',
    'cookie-secret': '0123456789abcdef'.repeat(2),
    'email-domain': '*',
    'redirect-url': `http://127.0.0.1:${port}/oauth2/callback`,
    'skip-jwt-bearer-tokens': 'true',
    'request-logging': 'false',
    'auth-logging': 'false',
    'standard-logging': 'false',
  }
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
  return started(program, words, { port, folder })
}

export async function startOathkeeper({ program, issuer, upstream, folder }: Place): Promise<Proxy> {
  const own = mkdtempSync(join(folder, 'oathkeeper-'))
  const [port, api] = [await freePort(), await freePort()]
  const discovery = await fetch(`${issuer}/.well-known/openid-configuration`)
  const { jwks_uri: uri }: { jwks_uri?: string } = Object(await discovery.json())
  const jwt = { jwks_urls: [uri], trusted_issuers: [issuer], target_audience: [RESOURCE] }
  const rule = {
    id: 'invoices',
    match: { url: 'http://app.test/<.*>', methods: ['GET'] },
    upstream: { url: `http://127.0.0.1:${upstream}` },
    authenticators: [{ handler: 'jwt' }],
    authorizer: { handler: 'allow' },
    mutators: [{ handler: 'noop' }],
  }
  const rules = join(own, 'rules.json')
  writeFileSync(rules, JSON.stringify([rule]))
  const config = {
    serve: {
      proxy: { host: '127.0.0.1', port },
      api: { host: '127.0.0.1', port: api },
      prometheus: { port: await freePort() },
    },
    log: { level: 'error' },
    access_rules: { matching_strategy: 'regexp', repositories: [`file://${rules}`] },
    authenticators: { jwt: { enabled: true, config: jwt } },
    authorizers: { allow: { enabled: true } },
    mutators: { noop: { enabled: true } },
  }
  const file = join(own, 'config.json')
  writeFileSync(file, JSON.stringify(config))
  return started(program, ['serve', '--config', file, '--disable-telemetry'], { port, folder: own })
}

async function started(
  program: string,
  words: readonly string[],
  { port, folder }: { readonly port: number; readonly folder: string },
): Promise<Proxy> {
  const logFile = join(folder, `log-${port}`)
  const log = openSync(logFile, 'w')
  const child = spawn(program, words, { cwd: folder, stdio: ['ignore', log, log] })
  process.once('exit', () => child.kill('SIGKILL'))
  await until(async () => child.exitCode !== null || (await isOpen(port)))
  if (child.exitCode !== null) throw new Error(`${program} ended: ${readFileSync(logFile, 'utf8').slice(-2_000)}`)
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGKILL')
      }),
  }
}
