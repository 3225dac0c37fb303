/**
 * Paths that name a script or an index file. Servers run `/admin.php/x` as `/admin.php` with the rest as PATH_INFO (RFC 3875
 * section 4.1.5), front controllers read `/index.php/admin` as `/admin`, and `/admin/index.html` is the page of `/admin/`.
 * Page frameworks serve the data of a page at a path of its own.
 */
import { PAGE_DATA_FILE, PAGE_DATA_NAMES, PAGE_DATA_PATHS } from '../frameworks/page-frameworks.ts'

/** Matches, in lower case, scripts of CGI, PHP, ASP.NET and ColdFusion. Their servers pass the names after a script to it. */
const SCRIPT = /\.(?:php\d?|phtml|phar|phps|f?cgi|pl|py|rb|sh|exe|dll|asp|as[hmp]x|axd|svc|cf[mc]|cfml|jspx?)$/
/** Scripts that are used as front controllers. */
const FRONT_CONTROLLER = /\.(?:php\d?|phtml|f?cgi|pl|cfm|aspx?)$/
export const SCRIPT_FOLDER = /^f?cgi-bin$/
const INDEX_FILE = /^(?:index|default|home)\.[a-z0-9]{1,5}$/
export const isIndexFile = (segment: string): boolean => INDEX_FILE.test(segment) || PAGE_DATA_FILE.test(segment)

/** The pages whose data the folded path may name, below the folder where the framework is mounted. */
export function pagesOfData(segments: readonly string[]): readonly (readonly string[])[] {
  const last = segments.at(-1) ?? ''
  if (PAGE_DATA_NAMES.some(([folder, name]) => name === last && segments.at(-2) === folder))
    return [[...segments.slice(0, -2), '']]
  return PAGE_DATA_PATHS.flatMap(({ start, skipped, end, home }) => {
    if (!end.test(last)) return []
    // A folder may have the same name as the framework, so the first and the last segment of that name are both tried.
    return [...new Set([segments.indexOf(start[0]), segments.lastIndexOf(start[0])])].flatMap((at) => {
      const from = at + start.length + skipped
      if (at < 0 || from >= segments.length || start.some((name, place) => segments[at + place] !== name)) return []
      const page = [...segments.slice(from, -1), last.replace(end, '')]
      const isHome = page[0] === home && (page[1] ?? '') === ''
      return [[...segments.slice(0, at), ...(isHome ? [''] : page)]]
    })
  })
}

export const isScript = (segments: readonly string[], at: number): boolean =>
  SCRIPT.test(segments[at] ?? '') || SCRIPT_FOLDER.test(segments[at - 1] ?? '')

/** True when a server could find a script or an index file in the folded path. */
export const namesScript = (segments: readonly string[]): boolean =>
  segments.some((text, at) => isScript(segments, at) || isIndexFile(text))

/** The name of a file without its formats: `backup.tar` and `backup` of `backup.tar.gz`. */
export function stemsOf(name: string): string[] {
  const stems: string[] = []
  for (let dot = name.indexOf('.', 1); dot > 0; dot = name.indexOf('.', dot + 1)) stems.push(name.slice(0, dot))
  return stems
}

/** `added`: an ending that a server could add to a name that ends in `stem`. */
export type Format = { readonly stem: string; readonly added: string }

/** The formats in the text after a parameter: `.csv` of `{file}.csv`. */
export const formatsOf = ({ after }: { readonly after: string }): readonly Format[] =>
  [...after.matchAll(/\./g)].map(({ index }) => ({ stem: after.slice(0, index), added: after.slice(index) }))

export type ScriptReading = {
  readonly segments: readonly string[]
  /** The index of the script in the path; null: the reading is about an index file at its end. */
  readonly scriptAt: number | null
  /** The index of the segment that decides whether the reading counts: the script, or the first segment after it. */
  readonly decisiveAt: number
  /** True if each segment kept its position. */
  readonly aligned: boolean
}

/** The ways in which servers may read a folded path in which they find a script. */
export function* scriptReadings(segments: readonly string[]): Generator<ScriptReading, void, undefined> {
  const last = segments.length - 1
  if (isIndexFile(segments[last] ?? ''))
    yield { segments: segments.with(last, ''), scriptAt: null, decisiveAt: last, aligned: true }
  for (let at = 0; at < last; at += 1) {
    if (!isScript(segments, at)) continue
    yield { segments: segments.slice(0, at + 1), scriptAt: at, decisiveAt: at, aligned: true }
    if (!FRONT_CONTROLLER.test(segments[at] ?? '')) continue
    // The script's own path is dropped: below a folder, or below the root, as rewriting rules do it.
    yield { segments: segments.toSpliced(at, 1), scriptAt: at, decisiveAt: at, aligned: false }
    yield { segments: segments.slice(at + 1), scriptAt: at, decisiveAt: 0, aligned: false }
  }
}
