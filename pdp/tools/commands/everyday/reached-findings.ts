/** Checks for `doctor` the connections of a route file: to each PDP by a gRPC call, and to the service. */
import { readFileSync } from 'node:fs'
import { connect as connectHttp2, constants, type SecureClientSessionOptions } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { resolve } from 'node:path'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { fileProblem } from '../../../shared/process/command/file-problem.ts'
import { type Finding, failed, ok, TIMEOUT_MS } from './finding.ts'
import type { RouteFile } from './route-file.ts'

const GRPC_PORT = 'it must be the gRPC port of a PDP (PORTCULLIS_GRPC_LISTEN), as the sidecar reaches it'
/** A gRPC message without content. */
const EMPTY_MESSAGE = Buffer.alloc(5)
const UNIMPLEMENTED = '12'

/** Connects like the sidecar, with its certificates, and asks a question without token, whose answer does not matter. */
export async function examineAddress(address: string, pdp: RouteFile['pdp'], folder: string): Promise<Finding> {
  const check = `pdp ${address}`
  const files: { ca?: Buffer; cert?: Buffer; key?: Buffer } = {}
  for (const name of ['ca', 'cert', 'key'] as const) {
    const path = pdp[`${name}_file`]
    if (typeof path !== 'string') continue
    try {
      files[name] = readFileSync(resolve(folder, path))
    } catch (err) {
      return failed(check, `${name}_file: ${fileProblem(path, err)}`, `give the right path, from ${folder}`)
    }
  }
  const insecure = pdp.insecure === true
  const answer = await askEmpty(`${insecure ? 'http' : 'https'}://${address}`, files)
  if (answer === 'grpc') return ok(check, 'a PDP answers there')
  if (answer === UNIMPLEMENTED) return failed(check, 'another gRPC service answers there', GRPC_PORT)
  if (/^(?:EPROTO|ERR_SSL)/.test(answer))
    return failed(
      check,
      'it does not speak TLS',
      'write insecure: true if this PDP has no certificate, else give its TLS port',
    )
  if (/CERT|SIGNED|ISSUER|SIGNATURE|ALTNAME/.test(answer))
    return failed(
      check,
      `its certificate is not accepted (${answer})`,
      'name the certificate of its authority by pdp.ca_file',
    )
  if (/^(?:ERR_HTTP2|HPE|ECONNRESET|not gRPC)/.test(answer)) {
    const tls = insecure ? ', or its port has TLS: then take insecure: true away' : ''
    return failed(check, 'what listens there does not speak gRPC', `${GRPC_PORT}${tls}`)
  }
  return failed(check, `it cannot be reached from here (${answer})`, GRPC_PORT)
}

/** `grpc`, the status of a server without this call, or the error. */
function askEmpty(origin: string, files: SecureClientSessionOptions): Promise<string> {
  return new Promise((done) => {
    const session = connectHttp2(origin, { ...files, timeout: TIMEOUT_MS })
    const end = (found: string): void => {
      clearTimeout(late)
      session.destroy()
      done(found)
    }
    const late = setTimeout(() => end('no answer'), TIMEOUT_MS)
    session.on('error', (err: NodeJS.ErrnoException) => end(err.code ?? err.message))
    session.on('close', () => end('ECONNRESET'))
    const call = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: '/portcullis.v1.DecisionService/Decide',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    // The error is handled at the session.
    call.on('error', () => {})
    let isGrpc = false
    call.on('response', (headers) => {
      isGrpc = String(headers['content-type']).startsWith('application/grpc')
      if (!isGrpc) end('not gRPC')
      else if (headers['grpc-status'] !== undefined)
        end(headers['grpc-status'] === UNIMPLEMENTED ? UNIMPLEMENTED : 'grpc')
    })
    call.on('trailers', (trailers) => end(trailers['grpc-status'] === UNIMPLEMENTED ? UNIMPLEMENTED : 'grpc'))
    call.on('end', () => end(isGrpc ? 'grpc' : 'not gRPC'))
    call.resume()
    call.end(EMPTY_MESSAGE)
  })
}

/** Only connects, because a service's answer to a made-up request means nothing. */
export async function examineUpstream(upstream: unknown): Promise<readonly Finding[]> {
  const { url, socket: path }: { url?: unknown; socket?: unknown } = isJsonObject(upstream)
    ? upstream
    : { url: upstream }
  if (typeof url !== 'string') return []
  const check = `upstream ${typeof path === 'string' ? path : url}`
  const socket = typeof path === 'string' ? { path } : addressOf(url)
  if (socket === null) return []
  const reason = await new Promise<string | null>((done) => {
    const connection = connectTcp({ ...socket, timeout: TIMEOUT_MS })
    const end = (found: string | null): void => {
      connection.destroy()
      done(found)
    }
    connection.on('connect', () => end(null))
    connection.on('timeout', () => end('no answer'))
    connection.on('error', (err: NodeJS.ErrnoException) => end(err.code ?? err.message))
  })
  if (reason === null) return [ok(check, 'something listens there')]
  const advice = 'start the service, or correct its address; from another machine it may be reached all the same'
  return [failed(check, `it cannot be reached from here (${reason})`, advice)]
}

function addressOf(text: string): { readonly host: string; readonly port: number } | null {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) return null
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port }
}
