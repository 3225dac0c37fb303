/** nginx for the sidecar benchmark: the upstream of everybody, and its own gate (`auth_request`) asking the same PDP. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isOpen } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'

export type Nginx = { readonly port: number; stop(): Promise<void> }

/** Answers everything with a few bytes. */
export const startUpstream = (): Promise<Nginx> =>
  startNginx((port) => `server { listen 127.0.0.1:${port}; location / { return 200 "invoice\\n"; } }`)

/**
 * Every request leads to one over HTTP to the PDP, with the client's token and one fixed question. nginx looks at the
 * status alone, which is 200 for a denial as well: it asks as much as a sidecar does, and decides nothing.
 */
export const startGate = (upstream: number, pdp: string): Promise<Nginx> =>
  startNginx(
    (port) => `upstream pdp { server ${new URL(pdp).host}; keepalive 64; }
  upstream app { server 127.0.0.1:${upstream}; keepalive 64; }
  server { listen 127.0.0.1:${port};
    location / { auth_request /gate; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://app; }
    location = /gate { internal; proxy_method POST; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host ${new URL(pdp).host}; proxy_set_header Content-Type application/json;
      proxy_set_body '{"permissions":[{"relation":"viewer","resource":"invoice:1"}]}';
      proxy_pass http://pdp/oauth/decisions; } }`,
  )

async function startNginx(servers: (port: number) => string): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-nginx-'))
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`)
  const text = `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr crit; user root;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; client_max_body_size 0; ${temporary.join(' ')}
  ${servers(port)} }`
  writeFileSync(join(folder, 'nginx.conf'), text)
  const words = ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')]
  const child = spawn('nginx', words, { stdio: ['ignore', 'ignore', 'inherit'] })
  let missing: Error | null = null
  child.once('error', (err) => {
    missing = err
  })
  await until(async () => missing !== null || child.exitCode !== null || (await isOpen(port)))
  if (missing !== null) throw new Error('nginx is not installed (Debian: nginx-light)', { cause: missing })
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(folder, { recursive: true, force: true })
          resolve()
        })
        child.kill('SIGQUIT')
      }),
  }
}
