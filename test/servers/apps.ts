/** One small application for each server: it says which handler ran, and for which user. */
import { php, python, ruby, type Sought } from './runtimes.ts'

export type App = {
  readonly name: string
  readonly seek: () => Sought
  readonly files: { readonly [name: string]: string }
  readonly args: (port: number) => readonly string[]
}

const FLASK = `
from flask import Flask, request
app = Flask(__name__)
say = lambda name: name + ' user=' + request.environ.get('REMOTE_USER', request.headers.get('Remote-User', ''))
@app.route('/admin/<path:rest>')
def admin(rest): return say('admin')
@app.route('/public/<path:rest>')
def public(rest): return say('public')
`
const ASGI = `
async def app(scope, receive, send):
    if scope['type'] != 'http': return
    path = scope.get('root_path', '') + scope['path'] if not scope['path'].startswith(scope.get('root_path', '')) else scope['path']
    names = [name.decode('latin1') for name, _ in scope['headers']]
    user = next((value.decode('latin1') for name, value in scope['headers'] if name in (b'remote-user', b'remote_user')), '')
    body = ('admin' if path.startswith('/admin') else 'public') + ' user=' + user
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': body.encode()})
`
const RACK = `
run lambda { |env|
  path = env['PATH_INFO']
  user = env['REMOTE_USER'] || env['HTTP_REMOTE_USER'] || ''
  [200, {'content-type' => 'text/plain'}, [(path.start_with?('/admin') ? 'admin' : 'public') + ' user=' + user]]
}
`
const PHP = `<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$user = $_SERVER['REMOTE_USER'] ?? $_SERVER['HTTP_REMOTE_USER'] ?? '';
echo (str_starts_with($_SERVER['HTTP_X_ORIGINAL_URL'] ?? $path, '/admin') ? 'admin' : 'public') . ' user=' . $user;
`

/** Serves the `config.ru` of the folder. */
export const puma = (port: number): readonly string[] => [
  '-e',
  'require "puma/cli"; Puma::CLI.new(ARGV).run',
  '--',
  '-b',
  `tcp://127.0.0.1:${port}`,
  'config.ru',
]

export const APPS: readonly App[] = [
  {
    name: 'gunicorn and Flask',
    seek: python,
    files: { 'flaskapp.py': FLASK },
    args: (port) => ['-m', 'gunicorn', '-w', '1', '-b', `127.0.0.1:${port}`, 'flaskapp:app'],
  },
  {
    name: 'uvicorn',
    seek: python,
    files: { 'asgiapp.py': ASGI },
    args: (port) => ['-m', 'uvicorn', '--port', String(port), 'asgiapp:app'],
  },
  {
    name: 'Puma and Rack',
    seek: ruby,
    files: { 'config.ru': RACK },
    args: puma,
  },
  {
    name: "PHP's own server",
    seek: php,
    files: { 'index.php': PHP },
    args: (port) => ['-S', `127.0.0.1:${port}`, 'index.php'],
  },
]
