/** Runs the checks of a pull request and posts them as one comment, which a later run replaces. Needs Node 24 alone. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const MARK = '<!-- portcullis check -->'
/** GitHub's bound on a comment is 65,536 characters. */
const SECTION_CHARACTERS_MAX = 20_000
const COMMENT_CHARACTERS_MAX = 60_000
const PAGE = 100

type Section = { readonly title: string; readonly text: string; readonly isFailed: boolean }
type Ran = { readonly status: number; readonly text: string }

const env = process.env
const words = (text = ''): readonly string[] => text.split(/\s+/).filter((word) => word !== '')
const event = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH ?? '', 'utf8')) as {
  readonly pull_request?: { readonly number: number; readonly base: { readonly sha: string } }
}

function run(command: string | undefined, args: readonly string[]): Ran {
  const [program = '', ...before] = words(command)
  const { status, stdout, stderr, error } = spawnSync(program, [...before, ...args], { encoding: 'utf8' })
  if (error !== undefined) throw new Error(`${program} cannot be started: ${error.message}`)
  return { status: status ?? 2, text: `${stdout}${stderr}`.trim() }
}

const portcullis = (...args: readonly string[]): Ran => run(env.PORTCULLIS, args)
const section = (title: string, { status, text }: Ran, isFailed = status !== 0): Section => ({ title, text, isFailed })

/** The file as it is at the base of the pull request. Null: it is new, or there is no pull request. */
function atBase(file: string, folder: string): string | null {
  const sha = event.pull_request?.base.sha
  if (sha === undefined) return null
  const show = () => spawnSync('git', ['show', `${sha}:./${file}`], { maxBuffer: 64 << 20 })
  let found = show()
  if (found.status !== 0) {
    // A checkout of one commit does not have the base.
    spawnSync('git', ['fetch', '--quiet', '--depth=1', 'origin', sha])
    found = show()
  }
  if (found.status !== 0) return null
  const path = join(folder, basename(file))
  writeFileSync(path, found.stdout)
  return path
}

function routeFile(file: string): readonly Section[] {
  const checked = run(env.SIDECAR, ['check', file])
  const tested = checked.status === 0 ? [section(`Tests of \`${file}\``, run(env.SIDECAR, ['test', file]))] : []
  return [section(`Route file \`${file}\``, checked), ...tested]
}

function model(file: string): readonly Section[] {
  const sections = [section(`Model \`${file}\``, portcullis('model', 'lint', file))]
  if (/\.ya?ml$/.test(file)) sections.push(section(`Tests of \`${file}\``, portcullis('model', 'test', file)))
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-'))
  try {
    const before = atBase(file, folder)
    if (before === null) return sections
    // Who gains or loses is for a reader to judge; only a model that cannot be read fails.
    const differing = portcullis('model', 'diff', before, file)
    return [...sections, section(`Who could gain and lose by the change of \`${file}\``, differing, false)]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function manifest(named: string): Section {
  const [app = '', file = ''] = named.split('=')
  const tried = portcullis('manifest', 'apply', app, file, '--dry-run', '--organization', env.ORGANIZATION ?? '')
  return section(`\`${file}\` on the PDP, by the data of ${env.ORGANIZATION}`, tried)
}

/** A fence that the text cannot end. */
function fenced(text: string): string {
  const cut = text.length > SECTION_CHARACTERS_MAX ? `${text.slice(0, SECTION_CHARACTERS_MAX)}\n… (cut)` : text
  const longest = Math.max(2, ...[...cut.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}text\n${cut}\n${fence}`
}

function commentOf(sections: readonly Section[]): string {
  const parts = sections.map(
    ({ title, text, isFailed }) => `### ${isFailed ? '❌' : '✅'} ${title}\n\n${fenced(text === '' ? 'ok' : text)}`,
  )
  const comment = [MARK, '## Portcullis', ...parts].join('\n\n')
  return comment.length <= COMMENT_CHARACTERS_MAX
    ? comment
    : `${[MARK, '## Portcullis', ...sections.map(({ title, isFailed }) => `- ${isFailed ? '❌' : '✅'} ${title}`)].join('\n\n')}\n\nThe texts are too long for a comment; they are in the log of the run.`
}

async function github(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${env.GITHUB_API_URL}/repos/${env.GITHUB_REPOSITORY}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${env.GITHUB_TOKEN}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`GitHub answered ${response.status} to ${method} ${path}`)
  return response.json()
}

/** Replaces the comment of an earlier run, or makes one. */
async function post(number: number, body: string): Promise<void> {
  for (let page = 1; ; page += 1) {
    const found = (await github('GET', `/issues/${number}/comments?per_page=${PAGE}&page=${page}`)) as readonly {
      readonly id: number
      readonly body?: string
    }[]
    const own = found.find((comment) => comment.body?.startsWith(MARK) === true)
    if (own !== undefined) return void (await github('PATCH', `/issues/comments/${own.id}`, { body }))
    if (found.length < PAGE) return void (await github('POST', `/issues/${number}/comments`, { body }))
  }
}

const sections = [
  ...words(env.ROUTE_FILES).flatMap(routeFile),
  ...words(env.MODELS).flatMap(model),
  ...words(env.MANIFESTS).map(manifest),
]
if (sections.length === 0) throw new Error('nothing to check: name route-files, models or manifests')
const comment = commentOf(sections)
for (const { title, text } of sections) console.log(`${title}\n${text}\n`)
if (env.GITHUB_STEP_SUMMARY !== undefined) appendFileSync(env.GITHUB_STEP_SUMMARY, `${comment}\n`)
if (event.pull_request !== undefined)
  await post(event.pull_request.number, comment).catch((err: Error) => {
    // The token of a pull request from a fork may not write; the summary of the run has the same text.
    console.log(`::warning::no comment was written: ${err.message}`)
  })
process.exitCode = sections.some(({ isFailed }) => isFailed) ? 1 : 0
