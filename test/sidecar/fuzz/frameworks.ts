/** The same routes in several frameworks and in nginx, each handler naming its route in the answer. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import KoaRouter from '@koa/router'
import express, { type RequestHandler } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { freePort } from '../../support/free-port.ts'

export type Framework = { readonly name: string; readonly origin: string; close(): Promise<void> }
export const HANDLER = 'x-handler'
const NONE = 'none'

const listen = async (name: string, listener: RequestListener): Promise<Framework> => {
  const server = createServer(listener)
  return { name, origin: await originOf(server), close: () => closeServer(server) }
}

function originOf(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}

const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

/** `paths` as in a route file, the more specific first. */
export async function startFrameworks(paths: readonly string[]): Promise<readonly Framework[]> {
  const started = [
    startExpress('express', paths, {}),
    startExpress('express, mounted', paths, {}, 'use'),
    startExpress('express, strict', paths, { 'case sensitive routing': true, 'strict routing': true }),
    startFastify('fastify', paths, {}),
    startFastify('fastify, lax', paths, {
      caseSensitive: false,
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
    }),
    startKoa(paths),
    startHono(paths),
    ...(hasNginx() ? [startNginx(paths)] : []),
  ]
  return Promise.all(started)
}

const colons = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1')

function startExpress(
  name: string,
  paths: readonly string[],
  settings: { [name: string]: boolean },
  by: 'get' | 'use' = 'get',
): Promise<Framework> {
  const app = express()
  for (const [key, value] of Object.entries(settings)) app.set(key, value)
  for (const path of paths) {
    const handle: RequestHandler = (_req, res) => void res.set(HANDLER, path).end()
    // What is mounted at /mnt has /mnt itself, and all below it.
    if (by === 'use' && path.endsWith('/**')) app.use(colons(path).replace('/**', '') || '/', handle)
    else app.get(colons(path).replace('**', '{*rest}'), handle)
  }
  app.use((_req, res) => void res.set(HANDLER, NONE).end())
  return listen(name, app)
}

async function startFastify(name: string, paths: readonly string[], routerOptions: object): Promise<Framework> {
  const app = fastify({ routerOptions })
  for (const path of paths)
    app.get(colons(path).replace('**', '*'), (_req, reply) => void reply.header(HANDLER, path).send(''))
  app.setNotFoundHandler((_req, reply) => void reply.header(HANDLER, NONE).send(''))
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  return { name, origin, close: () => app.close() }
}

function startKoa(paths: readonly string[]): Promise<Framework> {
  const app = new Koa()
  app.silent = true
  const router = new KoaRouter()
  for (const path of paths)
    router.get(colons(path).replace('**', '{*rest}'), (context) => {
      context.set(HANDLER, path)
      context.body = ''
    })
  app.use(router.routes())
  return listen('koa', app.callback())
}

function startHono(paths: readonly string[]): Promise<Framework> {
  const app = new Hono()
  // Its parameters end with their segment, unless an expression says what they are.
  for (const path of paths)
    app.get(colons(path.replace(/\{(\w+)\}(\.\w+)/g, ':$1{[^/]+\\$2}')).replace('**', '*'), (context) => {
      context.header(HANDLER, path)
      return context.body('')
    })
  return listen('hono', getRequestListener(app.fetch))
}

export const hasNginx = (): boolean => nginxPath() !== null
const nginxPath = (): string | null =>
  ['/usr/sbin/nginx', '/usr/bin/nginx'].find((path) => process.getBuiltinModule('fs').existsSync(path)) ?? null

/** nginx decodes, merges slashes and resolves dots before it looks for a location. */
async function startNginx(paths: readonly string[]): Promise<Framework> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-nginx-'))
  const port = await freePort()
  const locations = paths.map((path) => {
    const pattern = path
      .replace(/\./g, '\\.')
      .replace('**', '.*')
      .replace(/\{\w+\}/g, '[^/]+')
    return `location ~ "^${pattern}$" { add_header ${HANDLER} "${path}" always; return 204; }`
  })
  const config = `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 256; }
http { access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
server { listen 127.0.0.1:${port}; ${locations.join('\n')}
location / { add_header ${HANDLER} ${NONE} always; return 204; } } }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn(nginxPath() ?? '', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'inherit' })
  await reachable(port)
  return {
    name: 'nginx',
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(folder, { recursive: true, force: true })
          resolve()
        })
        child.kill('SIGQUIT')
      }),
  }
}

async function reachable(port: number): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (open) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing listens on ${port}`)
}
