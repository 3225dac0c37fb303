/** The books of `docs/` as pages of the console, for everybody who is signed in. */
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { EMPTY, html } from '../../../shared/base/html.ts'
import { RequestProblem } from '../../serve/http/status.ts'
import { address } from '../parts.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { parsePage } from './markdown.ts'

/** In the image and in the package of the server as here. */
const ROOT = new URL('../../../../', import.meta.url)
/** Pages whose file is not `docs/PAGE.md`. */
const FILES: { readonly [page: string]: string } = {
  '': 'docs/README.md',
  'routes-reference': 'docs/routes-reference.yaml',
  kubernetes: 'charts/portcullis/README.md',
}
const PICTURES = 'docs/pictures/'
/** A page with so many sections begins with a list of them. */
const SECTIONS_MIN = 4

export async function showHelp({ path, organization: org }: ConsoleVisit): Promise<View> {
  const page = path.split('/')[3] ?? ''
  const file = fileOf(page)
  const text = file === null ? null : await read(file)
  if (file === null || text === null) throw new RequestProblem('not_found', 'The books have no such page.')
  const { title, sections, body } = parsePage(text, (href) => urlOf(new URL(href, `${BOOKS}/${file}`), { file, org }))
  const list =
    sections.length < SECTIONS_MIN
      ? EMPTY
      : html`<ul class="sections">${sections.map(({ id, title: text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul>`
  return { title: title || page, body: html`<div class="book">${list}${body}</div>` }
}

const fileOf = (page: string): string | null =>
  Object.hasOwn(FILES, page) ? (FILES[page] ?? null) : /^[a-z][a-z-]{0,60}$/.test(page) ? `docs/${page}.md` : null

async function read(file: string): Promise<string | null> {
  const text = await readFile(new URL(file, ROOT), 'utf8').catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return null
    throw err
  })
  return text !== null && file.endsWith('.yaml') ? `    ${text.replaceAll('\n', '\n    ')}` : text
}

/** The pictures of the pages. */
export function addPictures(scope: FastifyInstance): void {
  scope.get<{ Params: { file: string } }>('/console/pictures/:file', async ({ params: { file } }, reply) => {
    const text = /^[a-z][a-z-]{0,60}\.svg$/.test(file) ? await read(`${PICTURES}${file}`) : null
    if (text === null) throw new RequestProblem('route_unknown', 'The books have no such picture.')
    return reply.type('image/svg+xml').send(text)
  })
}

/** An origin that no link names. */
const BOOKS = 'https://books.invalid'

/** Links between books stay in the console; those to files that it does not show lead nowhere. */
function urlOf(url: URL, { file, org }: { readonly file: string; readonly org: string | null }): string | null {
  if (url.origin !== BOOKS) return url.protocol === 'https:' ? url.href : null
  const named = url.pathname.slice(1)
  if (named === file && url.hash !== '') return url.hash
  if (named.startsWith(PICTURES)) return `/console/${named.slice('docs/'.length)}`
  const page = Object.entries(FILES).find(([, one]) => one === named)?.[0] ?? /^docs\/([a-z-]+)\.md$/.exec(named)?.[1]
  return page === undefined ? null : `${address(page === '' ? 'help' : `help/${page}`, { org })}${url.hash}`
}
