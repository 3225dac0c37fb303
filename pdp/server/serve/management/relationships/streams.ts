/** Imports and exports relationship tuples as lines, in bounded memory. */

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Store } from '../../../../engine/store/contract.ts'
import { createRestrictions } from '../../../../engine/writes/restrictions.ts'
import { mediaTypeOf } from '../../../../shared/base/media-type.ts'
import type { Change } from '../../../../shared/domain/change.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import type { Log } from '../../../../shared/process/log.ts'
import { isStream, piecesOf } from '../../http/bodies.ts'
import { problemOf } from '../../http/problem-response.ts'
import { type JsonSchema, object, POSITION } from '../../http/schemas.ts'
import { asRequestProblem, isFault, RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { requireGivenToGroups } from '../roles/given-roles.ts'
import { addManagementRoute, type ManagementResponse } from '../route.ts'
import { importTuples, type Progress } from './import.ts'
import { formatTupleLine, PARTS, parseFilter, TUPLE, type TupleFilter } from './tuple-bodies.ts'

const EXPORT_PAGE = 1_000
const PIECE_TIMEOUT_MS = 30_000
const NDJSON = 'application/x-ndjson'
const TEXT = 'text/plain'

const PROGRESS: JsonSchema = object(
  {
    line: { type: 'integer', description: 'All lines up to this one are stored.' },
    tuples: { type: 'integer', description: 'Tuples in the lines that this request stored.' },
    revision: { type: 'integer' },
    done: { type: 'boolean', description: 'Only in the last line: everything is stored.' },
    problem: { type: 'object', description: 'Only in the last line: why the lines after `line` are not stored.' },
  },
  ['line'],
)

export function addRelationshipStreams(app: FastifyInstance, deps: ManagementDeps & { readonly log: Log }): void {
  const base = '/v1/organizations/:org/relationships'
  const common = { tag: 'Relationships', organizationScope: 'organization' } as const
  const restriction = createRestrictions()
  addManagementRoute<{ params: 'org'; body: unknown; query: { after_line?: string } }>(app, deps, {
    ...common,
    method: 'POST',
    path: `${base}::import`,
    operation: 'importRelationships',
    summary: 'Writes one tuple per line, 1,000 lines in one transaction. Each line of the answer reports the progress.',
    scope: 'relationships:write',
    bodies: ['lines'],
    query: {
      after_line: {
        ...POSITION,
        description: 'Resumes an import: lines up to this one are skipped.',
      },
    },
    // A schema would be applied to the stream object's own members.
    body: {
      description: 'One tuple on each line: JSON as in a request body, or `tuple` or `tuple instant` in plain text.',
    },
    answer: PROGRESS,
    streams: [NDJSON],
    handle: ({ params, body, query, context, atomically }) => {
      if (!isStream(body)) throw new RequestProblem('media_type_unsupported', `send the lines as ${NDJSON} or ${TEXT}`)
      const progress = importTuples({
        pieces: piecesOf(body, PIECE_TIMEOUT_MS),
        fromLine: Number(query.after_line ?? 0),
        write: (tuplesOf) =>
          atomically([params.org], async (at, caller) => {
            const tuples = tuplesOf(await restriction(at.store))
            await requireGivenToGroups(at, caller, { log: params.org, tuples })
            const { position } = await at.store.write(params.org, tuples.map(written), { context })
            return position
          }),
      })
      return answerProgress(deps.log, progress, context.requestId)
    },
  })
  addManagementRoute<{ params: 'org'; query: TupleFilter }>(app, deps, {
    ...common,
    method: 'GET',
    path: `${base}::export`,
    operation: 'exportRelationships',
    summary: 'One tuple per line, in order, in the format of an import; optionally only matching ones.',
    scope: 'relationships:read',
    query: PARTS,
    answer: TUPLE,
    streams: [NDJSON, TEXT],
    async handle({ params, query, accept, recheck }) {
      const format = wantsText(accept) ? 'text' : 'json'
      const asked = { organization: params.org, filter: parseFilter(query) }
      const first = await readPage(deps.store, { ...asked, after: null })
      const pages = exportPages(deps.store, { ...asked, first, format, recheck })
      return { status: 'ok', body: Readable.from(pages), type: format === 'text' ? `${TEXT}; charset=utf-8` : NDJSON }
    },
  })
}

const written = (tuple: Tuple): Change => ({ kind: 'tuple', op: 'write', tuple })
const wantsText = (accept: string): boolean => accept.split(',').some((part) => mediaTypeOf(part) === 'text/plain')

/**
 * An error before anything is stored is an ordinary error answer; a later one is in the last line. Progress lines that the
 * caller does not read are dropped, so that the import does not wait for a caller that reads only at the end.
 */
async function answerProgress(
  log: Log,
  progress: AsyncGenerator<Progress>,
  requestId: string,
): Promise<ManagementResponse> {
  const first = await progress.next()
  const answer = new Readable({ read: () => undefined })
  const say = (line: object): boolean => answer.push(`${JSON.stringify(line)}\n`)
  const finish = async (): Promise<void> => {
    let at = first.done === true ? null : first.value
    let listens = true
    try {
      if (at !== null) listens = say(present(at))
      for await (const next of progress) {
        at = next
        if (listens || answer.readableLength === 0) listens = say(present(at))
      }
      say({ ...(at === null ? { line: 0 } : present(at)), done: true })
    } catch (err) {
      const found = asRequestProblem(err)
      if (isFault(found.code)) log.error({ event: 'request_failed', request_id: requestId, code: found.code, err })
      say({ line: at?.line ?? 0, problem: problemOf(found, requestId) })
    }
    answer.push(null)
  }
  void finish()
  return { status: 'ok', body: answer, type: NDJSON }
}

function present({ line, tuplesCount, revision }: Progress): object {
  return { line, tuples: tuplesCount, revision }
}

type Page = { readonly organization: string; readonly filter: TupleFilter; readonly after: Tuple | null }

function readPage(store: Pick<Store, 'tuples'>, { organization, filter, after }: Page): Promise<readonly Tuple[]> {
  return store.tuples(organization, filter, { after, countMax: EXPORT_PAGE })
}

/** An error closes the connection, so that the caller does not take a part for the whole export. */
async function* exportPages(
  store: Pick<Store, 'tuples'>,
  request: Omit<Page, 'after'> & {
    readonly first: readonly Tuple[]
    readonly format: 'json' | 'text'
    recheck(): Promise<unknown>
  },
): AsyncGenerator<string> {
  let page = request.first
  for (;;) {
    if (page.length > 0) yield `${page.map((tuple) => formatTupleLine(tuple, request.format)).join('\n')}\n`
    const last = page.at(-1)
    if (page.length < EXPORT_PAGE || last === undefined) return
    await request.recheck()
    page = await readPage(store, { ...request, after: last })
  }
}
