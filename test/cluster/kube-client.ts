/** A client of the API server for tests: JSON in, JSON out, with the status and the warnings. */
import { request } from 'node:https'
import { isObject, type JsonObject } from '../../sidecar/injector/pod/json.ts'

export type KubeAnswer = {
  readonly status: number
  readonly body: JsonObject
  /** What `kubectl` would print as `Warning: …`. */
  readonly warnings: readonly string[]
}
export type KubeClient = {
  send(method: string, path: string, body?: JsonObject | readonly JsonObject[]): Promise<KubeAnswer>
  /** Throws unless the answer is a success. */
  must(method: string, path: string, body?: JsonObject | readonly JsonObject[]): Promise<JsonObject>
}

export function kubeClient({ port, token, ca }: { port: number; token: string; ca: string }): KubeClient {
  function send(method: string, path: string, body?: JsonObject | readonly JsonObject[]): Promise<KubeAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<KubeAnswer>()
    const type = Array.isArray(body) ? 'application/json-patch+json' : 'application/json'
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': type,
      accept: 'application/json, application/jwk-set+json',
    }
    const req = request({ host: 'localhost', port, ca, method, path, headers, agent: false }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      res.on('end', () => {
        const parsed: unknown = text.startsWith('{') ? JSON.parse(text) : { text }
        const warning = res.headers.warning ?? ''
        const warnings = [...warning.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map(([, said = '']) =>
          said.replace(/\\(.)/g, '$1'),
        )
        resolve({ status: res.statusCode ?? 0, body: isObject(parsed) ? parsed : {}, warnings })
      })
    })
    req.on('error', reject)
    req.end(body === undefined ? undefined : JSON.stringify(body))
    return promise
  }
  return {
    send,
    async must(method, path, body) {
      const answer = await send(method, path, body)
      if (answer.status < 300) return answer.body
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body.message ?? JSON.stringify(answer.body)}`)
    },
  }
}
