/**
 * Page frameworks, a row for each: at which other paths they serve the data of a page, run its functions or fetch a path, and which
 * header fields and keys of the query steer them. Names of paths are folded, and stand below the folder that it is mounted at.
 */

type Names = readonly [string, ...string[]]
/** A path for the data of pages: `start`, `skipped` names, the page, `end`. `home`: the page of the folder. */
type DataPath = {
  readonly start: Names
  readonly skipped: number
  readonly end: RegExp
  readonly home: string
}
/** An endpoint that fetches the path that the query names, for images. */
type Fetcher = { readonly path: Names; readonly key: string }
type PageFramework = {
  readonly name: string
  /** Whole names of files that are the data of the page of their folder. */
  readonly dataFiles?: readonly RegExp[]
  /** Two last names of a path that are the data of the page of their folder. */
  readonly dataNames?: readonly (readonly [string, string])[]
  readonly dataPaths?: readonly DataPath[]
  /** The end of a name that is the data of the page with the rest of the name. */
  readonly dataEnds?: readonly RegExp[]
  /** Paths that run functions of any page, with anything behind them. */
  readonly functions?: readonly Names[]
  /** The beginning of a name with the same meaning. */
  readonly functionStarts?: readonly string[]
  /** Keys of the query that make a POST to any path run a function. */
  readonly functionKeys?: readonly string[]
  readonly fetchers?: readonly Fetcher[]
  /** Header fields that only the framework or its platform may set, or that name a function or the data of any page. */
  readonly fields?: readonly string[]
}

const FRAMEWORKS: readonly PageFramework[] = [
  {
    name: 'Next.js',
    // In files that it exports.
    dataFiles: [/__next\..*\.txt/],
    // `/_next/data/<build>/admin.json`.
    dataPaths: [{ start: ['_next', 'data'], skipped: 1, end: /\.json$/, home: 'index' }],
    fetchers: [{ path: ['_next', 'image'], key: 'url' }],
    fields: [
      'x-middleware-*',
      'x-invoke-*',
      'x-matched-path', // on Vercel
      'x-now-*', // on Vercel
      'x-prerender-*',
      'x-next-*', // revalidated tags
      'next-action',
      'next-resume',
    ],
  },
  // `/page-data/admin/page-data.json`.
  { name: 'Gatsby', dataPaths: [{ start: ['page-data'], skipped: 0, end: /^page-data\.json$/, home: 'index' }] },
  {
    name: 'React Router',
    dataFiles: [/_root\.(?:data|rsc)/, /_?\.(?:data|rsc|manifest)/],
    // Version 7 ends the data of `/admin` so.
    dataEnds: [/_root\.rsc$/],
    // `rsc-action-id`: in its RSC mode. The others: pre-rendered data, mode.
    fields: ['rsc-action-id', 'x-react-router-*'],
  },
  {
    name: 'SvelteKit',
    dataFiles: [/__data\.json/],
    // The data of `/report.html` ends so.
    dataEnds: [/(?<=\.html)__data\.json$/],
    functions: [['_app', 'remote']],
    functionKeys: ['/remote'],
  },
  {
    name: 'Nuxt',
    // Any character may stand for the dot, also the question mark that begins the query, and a slash.
    dataFiles: [/_payload(?:.js(?:on)?)?/],
    dataNames: [
      ['_payload', 'json'],
      ['_payload', 'js'],
    ],
    // Nuxt Content: queries of the texts of all pages.
    functions: [['__nuxt_island'], ['__nuxt_content']],
    fields: ['x-nuxt-*', 'x-nitro-*'],
  },
  {
    name: 'Astro',
    functions: [['_actions']],
    functionStarts: ['_server-islands'],
    functionKeys: ['_action'],
    fetchers: [{ path: ['_image'], key: 'href' }],
    // Locals and path of a middleware.
    fields: ['x-astro-*'],
  },
  { name: 'Qwik', dataFiles: [/q-data\.json/], fields: ['x-qrl'] },
  { name: 'Vike', dataFiles: [/index\.pagecontext\.json/] },
  {
    name: 'Waku',
    // `/RSC/R/admin.txt`, and the same with `_` at either end.
    dataPaths: [
      { start: ['rsc', 'r'], skipped: 0, end: /_?\.txt$/, home: '_root' },
      { start: ['rsc', '_r'], skipped: 0, end: /_?\.txt$/, home: '_root' },
    ],
    functions: [
      ['rsc', 'f'],
      ['rsc', '_f'],
    ],
  },
  { name: 'TanStack Start', functionStarts: ['_serverfn'] },
  // `x-single-flight`: the data of the page that Referer names.
  { name: 'SolidStart', functionStarts: ['_server'], fields: ['x-single-flight'] },
]

/** One member of all rows. */
const all = <T>(member: (framework: PageFramework) => readonly T[] | undefined): readonly T[] =>
  FRAMEWORKS.flatMap((framework) => member(framework) ?? [])

const sourceOf = ({ source }: RegExp): string => source

export const PAGE_DATA_FILE = new RegExp(`^(?:${all(({ dataFiles }) => dataFiles?.map(sourceOf)).join('|')})$`)
export const PAGE_DATA_NAMES = all(({ dataNames }) => dataNames)
export const PAGE_DATA_PATHS = all(({ dataPaths }) => dataPaths)
export const PAGE_DATA_ENDS = all(({ dataEnds }) => dataEnds)
export const PAGE_FUNCTIONS = all(({ functions }) => functions)
export const PAGE_FUNCTION_STARTS = all(({ functionStarts }) => functionStarts)
export const PAGE_FUNCTION_KEYS: ReadonlySet<string> = new Set(all(({ functionKeys }) => functionKeys))
export const PAGE_FETCHERS = all(({ fetchers }) => fetchers)
export const PAGE_FRAMEWORK_FIELDS = all(({ fields }) => fields)
