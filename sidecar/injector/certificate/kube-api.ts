/** Calls the API server with a Pod's ServiceAccount: JSON objects, one deadline, no redirects. */
import { readFileSync } from 'node:fs'
import { readAtMost } from '../../../pdp/shared/base/http-json.ts'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { StartError } from '../../../pdp/shared/process/exit.ts'
import { isObject, type JsonObject } from '../pod/json.ts'

const DEADLINE_MS = 10_000
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

export type KubeApi = {
  /** Reads an object. Throws StartError, whose message names the call and what the API server answered. */
  get(path: string): Promise<JsonObject>
  /** Like `get`; null: the object does not exist. */
  find(path: string): Promise<JsonObject | null>
  /** Creates an object. Throws StartError. */
  post(path: string, object: JsonObject): Promise<JsonObject>
  /** Replaces an object. The API server refuses it if the object's resourceVersion has changed since. Throws StartError. */
  put(path: string, object: JsonObject): Promise<JsonObject>
  /** Applies a JSON Patch (RFC 6902). Throws StartError. */
  patch(path: string, operations: readonly JsonObject[]): Promise<JsonObject>
}

/** The reason for which the token must not be sent to this address; null: it may. */
export function apiServerProblem(server: string): string | null {
  const origin = URL.parse(server)
  const isLoopback = origin?.hostname === 'localhost' || origin?.hostname === '127.0.0.1'
  const isSafe = origin?.protocol === 'https:' || (origin?.protocol === 'http:' && isLoopback)
  return isSafe ? null : '--api-server must be an https origin'
}

/** `server` is an origin. The token file is read for each call, because the kubelet replaces it. */
export function openKubeApi({ server, tokenFile }: { readonly server: string; readonly tokenFile: string }): KubeApi {
  async function call(method: string, path: string, type: string, body?: unknown): Promise<JsonObject> {
    const found = await send(method, path, type, body)
    if (found === null) throw new StartError(`${method} ${path}: 404 it does not exist`)
    return found
  }
  async function send(method: string, path: string, type: string, body?: unknown): Promise<JsonObject | null> {
    const what = `${method} ${path}`
    const answer = await fetch(new URL(path, server), {
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(DEADLINE_MS),
      headers: { authorization: `Bearer ${readToken(tokenFile)}`, accept: 'application/json', 'content-type': type },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((err: unknown) => {
      throw new StartError(`${what}: the API server does not answer: ${reasonOf(err)}`)
    })
    const bytes = answer.body === null ? Buffer.alloc(0) : await readAtMost(answer.body, ANSWER_BYTES_MAX)
    const parsed = bytes === null ? null : parseObject(bytes.toString('utf8'))
    if (answer.status === 404) return null
    if (answer.status >= 300) throw new StartError(`${what}: ${answer.status} ${messageOf(parsed)}`.trimEnd())
    if (parsed === null) throw new StartError(`${what}: the answer is not a JSON object`)
    return parsed
  }
  return {
    get: (path) => call('GET', path, 'application/json'),
    find: (path) => send('GET', path, 'application/json'),
    post: (path, object) => call('POST', path, 'application/json', object),
    put: (path, object) => call('PUT', path, 'application/json', object),
    patch: (path, operations) => call('PATCH', path, 'application/json-patch+json', operations),
  }
}

function readToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (err) {
    throw new StartError(`The token of the ServiceAccount: ${fileProblem(path, err)}. Name the file by --token-file`)
  }
}

function parseObject(text: string): JsonObject | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return isObject(parsed) ? parsed : null
  } catch {
    return null
  }
}

const messageOf = (status: JsonObject | null): string => (typeof status?.message === 'string' ? status.message : '')

function reasonOf(err: unknown): string {
  if (!(err instanceof Error)) return 'unknown error'
  return err.cause instanceof Error ? err.cause.message : err.message
}
