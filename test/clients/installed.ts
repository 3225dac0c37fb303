/** The clients of other languages, installed by path into a cache outside of the project, with what generates their code. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runs } from '../support/programs/run.ts'

export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-clients')
const CLIENTS = resolve('proto/clients')
const APPS = join(import.meta.dirname, 'apps')
const PYTHON = join(CACHE, 'python', 'bin', 'python')
/** Older ones than today's: what they generate works with more versions of the runtime. */
const [GRPC_TOOLS, PROTOC_GEN_GO] = ['grpcio-tools==1.75.1', 'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12']
const PACKAGES = [GRPC_TOOLS, 'fastapi==0.165.0', 'uvicorn==0.54.0', 'django==5.2.19', 'gunicorn==27.0.1']

export type Server = { readonly command: string; readonly words: (port: number) => readonly string[] }
/** The servers by their names, each with what starts it, or with why it cannot be had. */
export type Servers = { readonly [name: string]: Server | string }

/** `mayInstall`: what is missing is fetched. */
export function findServers(mayInstall: boolean): Servers {
  mkdirSync(CACHE, { recursive: true })
  const python = findPython(mayInstall)
  const server = (module: string, ...words: string[]): Server | string =>
    python ?? {
      command: PYTHON,
      words: (port) => ['-m', module, ...words.map((word) => word.replace('PORT', `${port}`))],
    }
  return {
    FastAPI: server('uvicorn', '--app-dir', APPS, '--port', 'PORT', '--log-level', 'warning', 'fastapi_app:app'),
    Django: server(
      ...['gunicorn', '--chdir', APPS, '--preload', '--workers', '1', '--threads', '8'],
      ...['--log-level', 'warning', '--bind', '127.0.0.1:PORT', 'django_app:app'],
    ),
    'net/http': buildGoApp(mayInstall),
  }
}

/** Null: it is there, with the client of this tree. */
function findPython(mayInstall: boolean): string | null {
  const ready = (): boolean =>
    spawnSync(PYTHON, ['-c', 'import fastapi, uvicorn, django, gunicorn, grpc_tools']).status === 0
  const pip = (...words: string[]): boolean =>
    runs(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...words], CACHE)
  if (!ready()) {
    if (!mayInstall) return `${join(CACHE, 'python')} is missing: run this without --short`
    if (!runs('python3', ['-m', 'venv', 'python'], CACHE)) return 'python3 with venv is not there'
    if (!pip(...PACKAGES)) return 'pip cannot install FastAPI, Django and their servers'
  }
  // A copy, because the build leaves folders beside the sources.
  const copy = mkdtempSync(join(tmpdir(), 'portcullis-client-'))
  try {
    cpSync(join(CLIENTS, 'python'), copy, { recursive: true })
    return pip('--force-reinstall', '--no-deps', copy) ? null : 'pip cannot install proto/clients/python'
  } finally {
    rmSync(copy, { recursive: true })
  }
}

function buildGoApp(mayInstall: boolean): Server | string {
  const folder = join(CACHE, 'app')
  const command = join(folder, 'app')
  if (!mayInstall && !existsSync(command)) return `${command} is missing: run this without --short`
  if (spawnSync('go', ['version']).status !== 0) return 'go is not there'
  mkdirSync(folder, { recursive: true })
  const module = readFileSync(join(CLIENTS, 'go/go.mod'), 'utf8').replace(/^module .*/, 'module app')
  writeFileSync(
    join(folder, 'go.mod'),
    `${module}\nrequire portcullis.dev/client v0.0.0\nreplace portcullis.dev/client => ${CLIENTS}/go\n`,
  )
  for (const [from, to] of [
    [join(CLIENTS, 'go/go.sum'), 'go.sum'],
    [join(APPS, 'main.go'), 'main.go'],
  ] as const)
    cpSync(from, join(folder, to))
  if (!runs('go', ['vet', './...'], join(CLIENTS, 'go')))
    return 'go vet complains of proto/clients/go, or its modules cannot be had'
  return runs('go', ['build', '-o', 'app', '.'], folder) ? { command, words: () => [] } : 'go cannot build the client'
}

const GENERATED = [
  'python/portcullis_client/decision_pb2.py',
  'python/portcullis_client/decision_pb2.pyi',
  'go/internal/decision/decision.pb.go',
]

/** Generates into `proto/clients`, or compares with it. Which files differ; a text: what is missing. */
export function generate({
  write,
  mayInstall,
}: {
  readonly write: boolean
  readonly mayInstall: boolean
}): readonly string[] | string {
  const plugin = join(CACHE, 'bin/protoc-gen-go')
  const python = findPython(mayInstall)
  if (python !== null) return python
  if (!existsSync(plugin)) {
    const env = { ...process.env, GOBIN: join(CACHE, 'bin') }
    if (!mayInstall || spawnSync('go', ['install', PROTOC_GEN_GO], { env }).status !== 0)
      return 'protoc-gen-go cannot be had'
  }
  const made = mkdtempSync(join(tmpdir(), 'portcullis-generated-'))
  try {
    const words = [
      ...['-m', 'grpc_tools.protoc', '-Iproto', `--plugin=${plugin}`, `--python_out=${made}`, `--pyi_out=${made}`],
      ...[`--go_out=${made}`, '--go_opt=Mportcullis/v1/decision.proto=portcullis/v1', 'portcullis/v1/decision.proto'],
    ]
    if (!runs(PYTHON, words, process.cwd())) return 'protoc failed'
    const fresh = (name: string): string =>
      readFileSync(join(made, 'portcullis/v1', name.slice(name.lastIndexOf('/') + 1)), 'utf8')
    if (write) for (const name of GENERATED) writeFileSync(join(CLIENTS, name), fresh(name))
    return GENERATED.filter((name) => fresh(name) !== readFileSync(join(CLIENTS, name), 'utf8'))
  } finally {
    rmSync(made, { recursive: true })
  }
}
