/**
 * A table of page frameworks: paths at which they serve the data of a page, run its functions or fetch a path, and fields and query keys
 * that control this. Names in paths are folded, and relative to the framework's folder.
 */

type Names = readonly [string, ...string[]]
type PageFramework = {
  readonly name: string
  /** Names of files that are the data of their folder's page. */
  readonly dataFiles?: readonly RegExp[]
  /** Pairs of last names of a path that are the data of their folder's page. */
  readonly dataNames?: readonly (readonly [string, string])[]
  /** Paths for the data of pages: `start`, then `skipped` names, then the page, then `end`. `home`: the name of the folder's own page. */
  readonly dataPaths?: readonly {
    readonly start: Names
    readonly skipped: number
    readonly end: RegExp
    readonly home: string
  }[]
  /** Endings of names. The name without its ending is the page whose data it is. */
  readonly dataEnds?: readonly RegExp[]
  /** Paths that run functions of any page; more names may follow. */
  readonly functions?: readonly Names[]
  /** Beginnings of names with the same effect. */
  readonly functionStarts?: readonly string[]
  /** Keys of the query that make a POST to any path run a function. */
  readonly functionKeys?: readonly string[]
  /** Endpoints for images that fetch the path which the key of the query names. */
  readonly fetchers?: readonly { readonly path: Names; readonly key: string }[]
  /** Header fields that only the framework or its platform should set, or that name a function or the data of any page. */
  readonly fields?: readonly string[]
}

const FRAMEWORKS: readonly PageFramework[] = [
  {
    name: 'Next.js',
    // Next.js exports such files.
    dataFiles: [/__next\..*\.txt/],
    // Matches `/_next/data/<build>/admin.json`.
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
  // Matches `/page-data/admin/page-data.json`.
  { name: 'Gatsby', dataPaths: [{ start: ['page-data'], skipped: 0, end: /^page-data\.json$/, home: 'index' }] },
  {
    name: 'React Router',
    dataFiles: [/_root\.(?:data|rsc)/, /_?\.(?:data|rsc|manifest)/],
    // Version 7 uses this end for the data of `/admin`.
    dataEnds: [/_root\.rsc$/],
    // `rsc-action-id`: in its RSC mode. The others: pre-rendered data, mode.
    fields: ['rsc-action-id', 'x-react-router-*'],
  },
  {
    name: 'SvelteKit',
    dataFiles: [/__data\.json/],
    // The data of `/report.html` has this end.
    dataEnds: [/(?<=\.html)__data\.json$/],
    functions: [['_app', 'remote']],
    functionKeys: ['/remote'],
  },
  {
    name: 'Nuxt',
    // Nuxt accepts any character instead of the dot, even `?` or a slash.
    dataFiles: [/_payload(?:.js(?:on)?)?/],
    dataNames: [
      ['_payload', 'json'],
      ['_payload', 'js'],
    ],
    // Nuxt Content: queries over the texts of all pages.
    functions: [['__nuxt_island'], ['__nuxt_content']],
    fields: ['x-nuxt-*', 'x-nitro-*'],
  },
  {
    name: 'Astro',
    functions: [['_actions']],
    functionStarts: ['_server-islands'],
    functionKeys: ['_action'],
    fetchers: [{ path: ['_image'], key: 'href' }],
    // Fields that set the locals and the path as if middleware had done it.
    fields: ['x-astro-*'],
  },
  { name: 'Qwik', dataFiles: [/q-data\.json/], fields: ['x-qrl'] },
  { name: 'Vike', dataFiles: [/index\.pagecontext\.json/] },
  {
    name: 'Waku',
    // Matches `/RSC/R/admin.txt`, also with `_` at either end.
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
