/**
 * What no other tool checks about the tree: sizes, module state, references that lead nowhere, words that the glossary
 * replaced, and functions that no growth table runs. What is wrong today is in ratchet.json; it may shrink and never grow. `--update` writes the file again.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join, posix } from 'node:path'
import { longFunctions } from './functions.ts'
import { withoutGrowth } from './growth.ts'
import { OLD_NAMES } from './words.ts'

/** Texts by path, as git has them. */
export type Tree = ReadonlyMap<string, string>
/** By rule, then by place or word: how much of it there is. */
export type Findings = { readonly [rule in (typeof RULES)[number]]: { readonly [what: string]: number } }

const RULES = [
  'long files',
  'long functions',
  'large folders',
  'module state',
  'dead references',
  'old names',
  'comments without a subject',
  'growth',
  'foreign blanks',
] as const
const LINES_MAX = 400
const FILES_MAX = 20
const ROOMS = /^(pdp|sidecar|proto|test|charts)\//
const isGenerated = (path: string): boolean => path.startsWith('proto/gen/')
const isCode = (path: string): boolean => extname(path) === '.ts' && ROOMS.test(path) && !isGenerated(path)
const isShipped = (path: string): boolean => isCode(path) && /^(pdp|sidecar)\//.test(path)
const isDocument = (path: string): boolean => extname(path) === '.md'

export function findings(tree: Tree): Findings {
  return {
    'long files': longFiles(tree),
    'long functions': Object.assign(
      {},
      ...[...tree].map(([path, text]) => (isShipped(path) ? longFunctions(path, text) : {})),
    ),
    'large folders': largeFolders(tree),
    'module state': moduleState(tree),
    'dead references': deadReferences(tree),
    'old names': counted(tree, { words: OLD_NAMES, of: isShipped, read: codeOf, flags: 'g' }),
    'comments without a subject': subjectless(tree),
    growth: withoutGrowth(tree),
    'foreign blanks': foreignBlanks(tree),
  }
}

/** One line for each thing of which there is more than `allowed` has. */
export function excess(found: Findings, allowed: Findings): readonly string[] {
  return RULES.flatMap((rule) =>
    Object.entries(found[rule]).flatMap(([what, count]) => {
      const max = allowed[rule]?.[what] ?? 0
      return count > max ? [`${rule}: ${what} (${count}, allowed ${max})`] : []
    }),
  )
}

/** In steps of 50, so that a line more in a file that is too long already does not stop anybody. */
function longFiles(tree: Tree): Findings['long files'] {
  const lines = [...tree].filter(([path]) => isCode(path)).map(([path, text]) => [path, linesOf(text).length] as const)
  const long = lines.filter(([, count]) => count > LINES_MAX)
  return Object.fromEntries(long.map(([path, count]) => [path, Math.ceil(count / 50) * 50]))
}

/** Rooms that read protocols. There only space and tab are blanks: `trimBlanks` of pdp/shared/base/blanks.ts. */
const PROTOCOL =
  /^(?:sidecar\/(?:http|request|listener|doors|sign-in|upstream|enforce)|pdp\/shared\/(?:base|token)|pdp\/server\/serve\/(?:http|authentication|authzen|scim)|pdp\/signals\/receiver|pdp\/identity\/(?:oauth|issuer|provider))\//
/** Exceptions with their reasons. */
const LENIENT: { readonly [path: string]: string } = {
  'sidecar/request/target.ts': 'refuses what any server may trim',
  'pdp/shared/base/client-address.ts': 'a setting',
  'pdp/shared/token/provider-failure.ts': 'a text for the log',
  'pdp/server/serve/scim/accounts.ts': 'names of people',
}

function foreignBlanks(tree: Tree): Findings['foreign blanks'] {
  const found = [...tree].filter(([path]) => isCode(path) && PROTOCOL.test(path) && !Object.hasOwn(LENIENT, path))
  const counts = found.map(([path, text]) => [path, text.match(/\.trim(?:Start|End)?\(/g)?.length ?? 0] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

/** They only become more, and none moves: the database knows each by its name. */
const MIGRATION = /\/migrations\/\d{4}-[\w-]+\.sql$/

function largeFolders(tree: Tree): Findings['large folders'] {
  const counts: { [folder: string]: number } = {}
  for (const path of tree.keys())
    if (ROOMS.test(path) && !MIGRATION.test(path)) counts[dirname(path)] = (counts[dirname(path)] ?? 0) + 1
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > FILES_MAX))
}

const COLLECTION = /^(?:export )?const (\w+)[^=\n]*= (?:new (?:Map|Set|WeakMap|WeakSet|Array)\b|\[\]|\{\})/gm
const VARIABLE = /^(?:export )?(?:let|var) (\w+)/gm

/** Exceptions with their reasons: bounded memories of pure functions, which two PDPs in one process may share. */
const MEMORIES: { readonly [place: string]: string } = {
  'pdp/engine/decide/models/known-models.ts: kept': 'what a text compiles to never changes',
  'pdp/engine/worker/worker.ts: compiling': 'texts that the one thread of the process is compiling for known-models.ts',
  'sidecar/http/folding.ts: foldedNames': 'how a name is folded never changes',
}

/** Tests may run side by side in one process, and an embedder may run two PDPs: modules keep nothing. */
function moduleState(tree: Tree): Findings['module state'] {
  const found: { [place: string]: number } = {}
  for (const [path, text] of tree) {
    if (!isShipped(path)) continue
    for (const [, name = ''] of text.matchAll(VARIABLE)) found[`${path}: ${name}`] = 1
    for (const [, name = ''] of text.matchAll(COLLECTION))
      if (new RegExp(`\\b${name}(\\.(set|add|delete|clear|push|splice|shift|pop)\\(|\\[[^\\]]+\\] =)`).test(text))
        found[`${path}: ${name}`] = 1
  }
  return Object.fromEntries(Object.entries(found).filter(([place]) => !Object.hasOwn(MEMORIES, place)))
}

/** A document is read whole, of code only the comments. */
function deadReferences(tree: Tree): Findings['dead references'] {
  const paths = [...tree.keys()]
  const folders = new Set(paths.flatMap(foldersOf))
  const names = new Set(paths.map((path) => basename(path)))
  const sections = new Set([...(tree.get('ARCHITECTURE.md') ?? '').matchAll(/^## (\d+)\./gm)].map(([, n]) => n))
  const exists = (path: string): boolean => tree.has(path) || folders.has(path.replace(/\/$/, ''))
  const isRoom = (path: string): boolean => [...folders].some((folder) => `/${folder}/`.endsWith(`/${path}`))
  const isKnown = (path: string): boolean =>
    exists(path) ||
    isRoom(path) ||
    (!ROOMS.test(path) && (path.includes('/') ? paths.some((known) => known.endsWith(`/${path}`)) : names.has(path)))
  const found: { [place: string]: number } = {}
  for (const [path, text] of tree) {
    if (!isDocument(path) && !isCode(path)) continue
    const dead = [
      ...pathsIn(path, text).filter((to) => !isKnown(to)),
      ...linksIn(path, text).filter((to) => !exists(to) && to !== ''),
      ...sectionsIn(path, text).filter((n) => !sections.has(n)),
      ...elsewhereIn(path, text),
    ]
    for (const to of dead) found[`${path}: ${to}`] = (found[`${path}: ${to}`] ?? 0) + 1
  }
  return found
}

/** A sentence has a subject and a verb; a member's comment is a noun phrase that starts with the thing. */
const SUBJECTLESS = /(?:\/\*\*(?:\n\s*\*)? |(?<!^\s*\/\/.*\n\s*)\/\/ )(?:Of|What|Who|Whose|Whom) /gm

function subjectless(tree: Tree): Findings['comments without a subject'] {
  const counts = [...tree].map(
    ([path, text]) => [path, isShipped(path) ? [...text.matchAll(SUBJECTLESS)].length : 0] as const,
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

const foldersOf = (path: string): string[] => (path.includes('/') ? [dirname(path), ...foldersOf(dirname(path))] : [])
const linesOf = (text: string): string[] => text.replace(/\n$/, '').split('\n')

/** Names of files of ours. The last dot of a sentence is not part of one. */
const PATH = /(?<![\w./@{-])(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|cjs|proto|sql|schema\.json)(?![\w/])/g
const FOLDER = /`([\w.-]+(?:\/[\w.-]+)*\/|(?:pdp|sidecar|proto|test|charts|\.ci|\.github)\/[\w./-]*)`/g
/** Names that belong to libraries, to users, or to no file in particular. */
const FOREIGN = /^(?:\.data|dist|portcullis\.dev|fga|node_modules|undici|oidc-provider|.*\.d)(?![\w-])|^index\.ts$/

function pathsIn(path: string, text: string): string[] {
  const read = isDocument(path) ? text : commentsOf(text)
  const folders = isDocument(path) ? [...read.matchAll(FOLDER)].map(([, folder = '']) => folder) : []
  return [...new Set([...[...read.matchAll(PATH)].map(([found]) => found), ...folders])].filter(
    (to) => !FOREIGN.test(to),
  )
}

function linksIn(path: string, text: string): string[] {
  if (!isDocument(path)) return []
  const targets = [...text.matchAll(/\]\(([^)\s#]*)(?:#[^)]*)?\)/g)].map(([, to = '']) => to)
  return targets
    .filter((to) => to !== '' && !/^[a-z]+:/.test(to))
    .map((to) => posix.normalize(posix.join(posix.dirname(path), to)))
}

function sectionsIn(path: string, text: string): string[] {
  const cited = /ARCHITECTURE(?:\.md)?,? sections? (\d+)/g
  const own = /(?<!RFC \d+ )\bsections? (\d+)/g
  return [...text.matchAll(path === 'ARCHITECTURE.md' ? own : cited)].map(([, n = '']) => n)
}

/** Citations of documents that a reader of the repository does not have. */
function elsewhereIn(path: string, text: string): string[] {
  const read = isDocument(path) ? text : commentsOf(text)
  return [...read.matchAll(/\b(?:DESIGN\b|[Ss]eed(?:'s)? (?:section|table)|(?:[Ii]ssue|#) ?#?\d{1,3}\b(?!;))/g)].map(
    ([to]) => to,
  )
}

function counted(
  tree: Tree,
  {
    words,
    of,
    read,
    flags,
  }: { words: readonly string[]; of: (path: string) => boolean; read: (text: string) => string; flags: string },
): { readonly [word: string]: number } {
  const text = [...tree].flatMap(([path, text]) => (of(path) ? [read(text)] : [])).join('\n')
  const counts = words.map((word) => [word, [...text.matchAll(new RegExp(`\\b${word}\\b`, flags))].length] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

// Near enough for words: nothing here decides what the code does.
const COMMENT = /(?:^|\s)\/\/ .*$|^\s*\/?\*.*$|\/\*\*.*?\*\//gm
const commentsOf = (text: string): string => (text.match(COMMENT) ?? []).join('\n')
const codeOf = (text: string): string => text.replace(COMMENT, '').replace(/'[^'\n]*'|`[^`]*`|"[^"\n]*"/g, "''")

/** What git tracks, and what it would. */
export function readTree(): Tree {
  const { stdout } = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    encoding: 'utf8',
  })
  const paths = stdout.split('\0').filter((path) => path !== '' && existsSync(path))
  return new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]))
}

if (import.meta.main) {
  const ratchet = join(import.meta.dirname, 'ratchet.json')
  const found = findings(readTree())
  if (process.argv.includes('--update')) writeFileSync(ratchet, `${JSON.stringify(found, null, 2)}\n`)
  const allowed: Findings = JSON.parse(readFileSync(ratchet, 'utf8'))
  const wrong = excess(found, allowed)
  for (const line of wrong) console.error(line)
  if (wrong.length > 0) console.error('CONTRIBUTING.md says what this check is for.')
  const better = excess(allowed, found)
  if (better.length > 0) console.log(`${better.length} entries of ratchet.json can go: node test/tidy/tidy.ts --update`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}
