/** Keycloak as a transmitter of Shared Signals, which its version 26.7 has as an experiment: from Maven Central, cached. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { CACHE } from './runtimes.ts'

const VERSION = '26.7.3'
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
const DOWNLOAD_MS = 900_000
/** The first start builds the server anew, with the feature. */
const START_MS = 600_000
export const RECEIVER = { id: 'portcullis', secret: 'the-secret-of-the-receiver' }
export const ANN = { id: '11111111-2222-3333-4444-555555555555', name: 'ann', password: 'the password of ann' }
/** Of Keycloak's two, one does not include the other. */
export const SCOPE = 'ssf.manage ssf.read'
export const AUDIENCE = 'orders-api'
const ADMIN = { name: 'admin', password: 'the password of the administrator' }

/** Where it is unpacked, or why it cannot be had. */
export function keycloakHome(): { readonly home: string } | string {
  const folder = join(CACHE, 'keycloak')
  const home = join(folder, `keycloak-${VERSION}`)
  if (spawnSync('java', ['-version']).status !== 0) return 'java is not there'
  if (existsSync(join(home, 'bin', 'kc.sh'))) return { home }
  mkdirSync(folder, { recursive: true })
  const zip = join(folder, `keycloak-quarkus-dist-${VERSION}.zip`)
  const words = ['-q', '-B', COPY, `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${folder}`]
  if (!existsSync(zip) && spawnSync('mvn', words, { timeout: DOWNLOAD_MS, stdio: 'ignore' }).status !== 0)
    return `Maven cannot copy ${ARTIFACT}`
  const { status } = spawnSync('python3', ['-m', 'zipfile', '-e', zip, folder], { stdio: 'ignore' })
  if (status !== 0) return 'python3 cannot unpack the distribution'
  spawnSync('chmod', ['+x', join(home, 'bin', 'kc.sh')])
  return { home }
}

export type Keycloak = {
  readonly issuer: string
  /** An access token of the person, for AUDIENCE. */
  signIn(): Promise<string>
  endSessions(): Promise<void>
  setPassword(): Promise<void>
  stop(): void
}

/** `pushUrl`: below which the receiver takes pushes. */
export async function startKeycloak(
  home: string,
  { port, pushUrl }: { readonly port: number; readonly pushUrl: string },
): Promise<Keycloak> {
  mkdirSync(join(home, 'data', 'import'), { recursive: true })
  writeFileSync(join(home, 'data', 'import', 'acme-realm.json'), JSON.stringify(realmOf(pushUrl)))
  const root = `http://127.0.0.1:${port}`
  const issuer = `${root}/realms/acme`
  const transmitter = '--spi-ssf-transmitter--default--'
  const child = spawn(
    join(home, 'bin', 'kc.sh'),
    [
      ...['start-dev', '--features=ssf', '--db=dev-mem', '--import-realm'],
      ...['--http-host=127.0.0.1', `--http-port=${port}`],
      ...[`${transmitter}min-verification-interval-seconds=5`, `${transmitter}outbox-drainer-interval=1s`],
      ...[`${transmitter}allow-insecure-push-targets=true`, `${transmitter}default-subjects=ALL`],
    ],
    {
      stdio: 'ignore',
      detached: true, // the script starts Java as a child of its own
      env: {
        ...process.env,
        JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
        KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.name,
        KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
      },
    },
  )
  const stop = (): void => stopGroup(child)
  try {
    await Promise.race([ready(issuer), once(child, 'exit').then(() => Promise.reject(new Error('Keycloak ended')))])
  } catch (err) {
    stop()
    throw err
  }
  const asAdmin = async (method: string, path: string, body?: object): Promise<unknown> => {
    const grant = { grant_type: 'password', client_id: 'admin-cli', username: ADMIN.name, password: ADMIN.password }
    const token = await tokenOf(`${root}/realms/master`, grant)
    const response = await fetch(`${root}/admin/realms/acme${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
  await allowScopes(asAdmin)
  return {
    issuer,
    stop,
    signIn: () =>
      tokenOf(issuer, { grant_type: 'password', client_id: 'web', username: ANN.name, password: ANN.password }),
    async endSessions() {
      await asAdmin('POST', `/users/${ANN.id}/logout`)
    },
    async setPassword() {
      const credential = { type: 'password', value: ANN.password, temporary: false }
      await asAdmin('PUT', `/users/${ANN.id}/reset-password`, credential)
    },
  }
}

type Named = { readonly id: string; readonly name?: string; readonly clientId?: string }

/** The scopes exist with the feature, and no client of an imported realm may ask for them. */
async function allowScopes(asAdmin: (method: string, path: string) => Promise<unknown>): Promise<void> {
  const listed = async (path: string): Promise<readonly Named[]> => (await asAdmin('GET', path)) as readonly Named[]
  const [client] = await listed(`/clients?clientId=${RECEIVER.id}`)
  for (const { id, name } of await listed('/client-scopes'))
    if (SCOPE.split(' ').includes(name ?? ''))
      await asAdmin('PUT', `/clients/${client?.id}/optional-client-scopes/${id}`)
}

async function ready(issuer: string): Promise<void> {
  const endMs = performance.now() + START_MS
  while ((await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => null))?.ok !== true) {
    if (performance.now() > endMs) throw new Error('Keycloak did not become ready')
    await delay(500)
  }
}

function stopGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

async function tokenOf(issuer: string, grant: { readonly [name: string]: string }): Promise<string> {
  const body = new URLSearchParams({ ...grant, scope: 'openid' })
  const response = await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body })
  const { access_token: token } = (await response.json()) as { access_token?: string }
  if (token === undefined) throw new Error(`no token of ${issuer}: ${response.status}`)
  return token
}

const realmOf = (pushUrl: string): object => ({
  realm: 'acme',
  enabled: true,
  sslRequired: 'none',
  attributes: { 'ssf.transmitterEnabled': 'true' },
  clients: [
    {
      clientId: 'web',
      publicClient: true,
      directAccessGrantsEnabled: true,
      protocolMappers: [
        {
          name: 'audience',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-audience-mapper',
          config: { 'included.custom.audience': AUDIENCE, 'access.token.claim': 'true' },
        },
      ],
    },
    {
      clientId: RECEIVER.id,
      secret: RECEIVER.secret,
      publicClient: false,
      standardFlowEnabled: false,
      serviceAccountsEnabled: true,
      attributes: { 'ssf.enabled': 'true', 'ssf.defaultSubjects': 'ALL', 'ssf.validPushUrls': `${pushUrl}/*` },
    },
  ],
  users: [
    {
      id: ANN.id,
      username: ANN.name,
      enabled: true,
      email: 'ann@acme.test',
      emailVerified: true,
      firstName: 'Ann',
      lastName: 'Acme',
      credentials: [{ type: 'password', value: ANN.password }],
    },
  ],
})
