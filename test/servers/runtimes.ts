/** Real servers and parsers of other languages, installed from their registries into a folder outside the project. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-servers')
const INSTALL_MS = 240_000

const runs = (command: string, args: readonly string[], cwd = CACHE): boolean =>
  spawnSync(command, args, { cwd, timeout: INSTALL_MS, stdio: 'ignore' }).status === 0

export type Runtime = {
  readonly command: string
  readonly args: readonly string[]
}
/** The runtime, or why it cannot be had. */
export type Sought = Runtime | string

/** Python with gunicorn, Flask, uvicorn and Django. */
export function python(): Sought {
  mkdirSync(CACHE, { recursive: true })
  const command = join(CACHE, 'python', 'bin', 'python')
  const ready = (): boolean => runs(command, ['-c', 'import gunicorn, flask, uvicorn, django'])
  if (ready()) return { command, args: [] }
  if (!runs('python3', ['-m', 'venv', 'python'])) return 'python3 with venv is not there'
  if (!runs(command, ['-m', 'pip', 'install', '-q', 'gunicorn', 'flask', 'uvicorn', 'django']) || !ready())
    return 'pip cannot install gunicorn, flask, uvicorn and django'
  return { command, args: [] }
}

/** Beside the others, so that a folder of theirs that is there already stays good. */
export function bottle(): Sought {
  mkdirSync(CACHE, { recursive: true })
  const command = join(CACHE, 'bottle', 'bin', 'python')
  const ready = (): boolean => runs(command, ['-c', 'import bottle'])
  if (ready()) return { command, args: [] }
  if (!runs('python3', ['-m', 'venv', 'bottle'])) return 'python3 with venv is not there'
  if (!runs(command, ['-m', 'pip', 'install', '-q', 'bottle']) || !ready()) return 'pip cannot install bottle'
  return { command, args: [] }
}

/** Ruby with Rack and Puma as Debian packs them, unpacked without being installed. */
export function ruby(): Sought {
  if (!runs('ruby', ['-v'], '/')) return 'ruby is not there'
  const folder = join(CACHE, 'ruby')
  mkdirSync(folder, { recursive: true })
  const packages = ['ruby-rack', 'puma', 'ruby-nio4r']
  if (!existsSync(join(folder, 'usr', 'bin', 'puma'))) {
    if (!runs('apt-get', ['download', '-q', ...packages], folder)) return 'apt-get cannot download ruby-rack and puma'
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.deb')))
      if (!runs('dpkg', ['-x', name, '.'], folder)) return 'dpkg cannot unpack ruby-rack and puma'
  }
  const args = librariesIn(folder)
  if (!runs('ruby', [...args, '-e', 'require "rack"; require "puma"; require "puma/server"']))
    return 'rack and puma do not load'
  return { command: 'ruby', args }
}

function librariesIn(folder: string): string[] {
  const paths = readdirSync(join(folder, 'usr'), { recursive: true, encoding: 'utf8' })
  return paths
    .filter((path) => /(?:\/lib|\/vendor_ruby|\/ruby\/vendor_ruby|extensions\/[^/]+\/[^/]+\/[^/]+)$/.test(path))
    .flatMap((path) => ['-I', join(folder, 'usr', path)])
}

const TRIXIE =
  'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n'

/** Ruby with Rack 3, which is in Debian 13: from its registry, beside the lists of the system. */
export function rack3(): Sought {
  if (!runs('ruby', ['-v'], '/')) return 'ruby is not there'
  const folder = join(CACHE, 'rack3')
  for (const part of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(folder, part), { recursive: true })
  if (!existsSync(join(folder, 'usr'))) {
    writeFileSync(join(folder, 'sources.list'), TRIXIE)
    const sources = [`Dir::Etc::SourceList=${folder}/sources.list`, 'Dir::Etc::SourceParts=-']
    const places = [`Dir::State::Lists=${folder}/lists`, `Dir::Cache=${folder}/cache`, 'Acquire::Languages=none']
    const given = [...sources, ...places].flatMap((text) => ['-o', text])
    if (!runs('apt-get', [...given, 'update', '-q'], folder)) return 'apt-get cannot read the lists of Debian 13'
    if (!runs('apt-get', [...given, 'download', '-q', 'ruby-rack'], folder)) return 'apt-get cannot download ruby-rack'
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.deb')))
      if (!runs('dpkg', ['-x', name, '.'], folder)) return 'dpkg cannot unpack ruby-rack'
  }
  const args = librariesIn(folder)
  if (!runs('ruby', [...args, '-e', 'require "rack"; exit(Rack.release.start_with?("3."))']))
    return 'Rack 3 does not load'
  return { command: 'ruby', args }
}

export const php = (): Sought => (runs('php', ['-v'], '/') ? { command: 'php', args: [] } : 'php is not there')
export const go = (): Sought => (runs('go', ['version'], '/') ? { command: 'go', args: ['run'] } : 'go is not there')

const GIN = 'github.com/gin-gonic/gin@v1.12.0'

/** Builds the program, since `go run` would leave its child behind. */
export function gin(program: string): Sought {
  if (!runs('go', ['version'], '/')) return 'go is not there'
  const folder = join(CACHE, 'gin')
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, 'go.mod')) && !runs('go', ['mod', 'init', 'server.test'], folder))
    return 'go cannot make a module'
  writeFileSync(join(folder, 'main.go'), program)
  if (!runs('go', ['get', GIN], folder) || !runs('go', ['build', '-o', 'server', '.'], folder))
    return 'go cannot build gin'
  return { command: join(folder, 'server'), args: [] }
}

const SPRING = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>test</artifactId><version>1</version>
<dependencies><dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-web</artifactId>
<version>3.5.7</version></dependency></dependencies></project>
`
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'

/** Compiles the program, whose class is `reports.Reports`: Spring reads it from a file. */
export function spring(program: string): Sought {
  const folder = join(CACHE, 'spring')
  mkdirSync(folder, { recursive: true })
  if (!runs('java', ['-version'], '/')) return 'java is not there'
  const jars = join(folder, 'jars')
  if (!existsSync(jars)) {
    writeFileSync(join(folder, 'pom.xml'), SPRING)
    if (!runs('mvn', ['-q', '-B', COPY, '-DoutputDirectory=jars'], folder)) return 'mvn cannot get Spring Boot'
  }
  writeFileSync(join(folder, 'Reports.java'), program)
  if (!runs('javac', ['-parameters', '-cp', join(jars, '*'), '-d', '.', 'Reports.java'], folder))
    return 'javac cannot compile it'
  return {
    command: 'java',
    args: ['-XX:TieredStopAtLevel=1', '-cp', `${folder}:${join(jars, '*')}`, 'reports.Reports'],
  }
}

/** Packages of Debian that this machine must have: `require` finds them. */
export function rails(): Sought {
  const ready = runs('ruby', ['-e', 'require "action_controller/railtie"; require "rack/handler/webrick"'], '/')
  return ready ? { command: 'ruby', args: [] } : 'ruby-rails and ruby-webrick are not there'
}
export const symfony = (): Sought => phpWith('Symfony/Component/HttpFoundation', 'php-symfony-http-foundation')
export const laravel = (): Sought => phpWith('Illuminate/Http', 'php-illuminate-http')

const phpWith = (library: string, named: string): Sought =>
  existsSync(join('/usr/share/php', library, 'autoload.php')) ? php() : `${named} is not there`

export function qs(): Sought {
  const folder = join(CACHE, 'qs')
  mkdirSync(folder, { recursive: true })
  const installed = join(folder, 'node_modules', 'qs')
  if (!existsSync(installed) && !runs('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', 'qs'], folder))
    return 'npm cannot install qs'
  return { command: process.execPath, args: ['--input-type=commonjs', '-e'] }
}
export const qsPath = (): string => join(CACHE, 'qs', 'node_modules', 'qs')

/** Starts a server and waits until it takes connections. Throws when it does not in two minutes. */
export async function startServer(
  { command, args }: Runtime,
  more: readonly string[],
  { cwd, port }: { readonly cwd: string; readonly port: number },
): Promise<ChildProcess> {
  const child = spawn(command, [...args, ...more], { cwd, stdio: 'ignore' })
  for (let tries = 0; tries < 2_400; tries += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (open) return child
    if (child.exitCode !== null) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  child.kill('SIGKILL')
  throw new Error(`${command} ${more.join(' ')} does not listen`)
}
