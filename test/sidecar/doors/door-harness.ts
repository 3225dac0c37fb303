/** A sidecar with a door of each profile, and gateways that ask there as the real ones do. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { afterEach } from 'vitest'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import {
  Authorization,
  type CheckRequest,
  CheckRequestSchema,
  type CheckResponse,
} from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import {
  DOOR_FIELDS,
  DOOR_PROFILES,
  type DoorProfile,
  type GrpcProfile,
  type HttpProfile,
  isHttpProfile,
} from '../../../sidecar/http/door-fields.ts'
import type { SidecarLimits } from '../../../sidecar/route-file/default-limits.ts'
import { field, type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import type { Script } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'

export const SECRET = 'a-secret-of-a-gateway-that-is-long-enough'

export const ROUTES = `GET /public: public
GET /docs/{id}: viewer doc:{id}
POST /docs: viewer doc:{body.id}
GET /shelf: viewer doc:{header.x-doc}`
export const WITHOUT_BODIES = ROUTES.replace(/^POST.*\n/m, '')

/** Starts as `startDoors`, and closes after each test of the file. */
export function openAndClose(): typeof startDoors {
  const opened: DoorHarness[] = []
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })
  return async (options) => {
    const started = await startDoors(options)
    opened.push(started)
    return started
  }
}

export type AskedRequest = {
  readonly method?: string
  readonly target?: string
  readonly host?: string
  readonly scheme?: string
  /** Names and values. */
  readonly fields?: readonly (readonly [string, string])[]
  readonly body?: string
}
/** What a gateway learns, in the words of all of them. */
export type DoorAnswer = {
  /** 200: the gateway forwards the request. */
  readonly status: number
  /** The problem's code; null: none. */
  readonly code: string | null
  /** To the service when it is allowed, else to the client; names in lower case. */
  readonly fields: readonly (readonly [string, string])[]
  readonly removed: readonly string[]
}
export type DoorHarness = {
  readonly inner: Harness
  port(profile: DoorProfile): number
  /** A reload, with the same doors. */
  apply(routes: string, extra?: string): void
  /** As the gateway of the profile asks, with its secret. */
  ask(profile: DoorProfile, request: AskedRequest): Promise<DoorAnswer>
  /** `values`: of the caller's metadata. */
  check(profile: GrpcProfile, message: CheckRequest, values?: readonly string[]): Promise<CheckResponse>
  /** Sends the lines as they are to the door of the profile. */
  raw(profile: HttpProfile, lines: readonly string[]): Promise<RawAnswer>
  close(): Promise<void>
}

export async function startDoors(options: {
  readonly routes: string
  readonly script?: Script
  readonly extra?: string
  readonly limits?: Partial<SidecarLimits>
  /** Of the profiles of ext_authz. */
  readonly body?: boolean
  readonly profiles?: readonly DoorProfile[]
}): Promise<DoorHarness> {
  const { routes, script, limits, body = false, extra = '', profiles = DOOR_PROFILES } = options
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-doors-'))
  const secretFile = join(folder, 'secret')
  writeFileSync(secretFile, `${SECRET}\n`)
  const doors = profiles.map((profile, at) => ({
    profile,
    listen: `127.0.0.${at + 2}:0`,
    secret_file: secretFile,
    ...(body && !isHttpProfile(profile) && { body }),
  }))
  const withDoors = (text: string): string => `${text}\ndoors: ${JSON.stringify(doors)}`
  const inner = await startHarness({
    routes,
    extra: withDoors(extra),
    ...(script !== undefined && { script }),
    ...(limits !== undefined && { limits }),
    certificatesOf: readCertificates,
  })
  const addresses = new Map(
    (await inner.sidecar.openDoors()).map((address, at) => [profiles[at] ?? 'envoy', address] as const),
  )
  const addressOf = (profile: DoorProfile): string => addresses.get(profile) ?? ''
  const port = (profile: DoorProfile): number => Number(addressOf(profile).split(':').at(-1))
  const clients = new Map<string, Client>()

  function check(
    profile: GrpcProfile,
    message: CheckRequest,
    values: readonly string[] = [SECRET],
  ): Promise<CheckResponse> {
    const address = addressOf(profile)
    const client = clients.get(address) ?? new Client(address, credentials.createInsecure())
    clients.set(address, client)
    const metadata = new Metadata()
    for (const value of values) metadata.add('x-portcullis-caller', value)
    const { check: method } = serviceDefinition(Authorization)
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        message,
        metadata,
        { deadline: Date.now() + 20_000 },
        (err, response) => (err === null && response !== undefined ? resolve(response) : reject(err)),
      )
    })
  }

  const raw = (profile: HttpProfile, lines: readonly string[]): Promise<RawAnswer> =>
    sendRaw(port(profile), `${lines.join('\r\n')}\r\n\r\n`, { host: addressOf(profile).split(':')[0] ?? '' })

  return {
    inner,
    port,
    apply: (routes, more = '') => inner.apply(routes, withDoors(more)),
    check,
    raw,
    async ask(profile, request) {
      if (!isHttpProfile(profile)) return readCheckResponse(await check(profile, checkOf(request, profile === 'envoy')))
      const answer = await raw(profile, linesOf(profile, request))
      if (profile !== 'nginx' || answer.status === 200) return readAnswer(answer)
      const refusal = field(answer, 'x-portcullis-refusal') ?? ''
      return readAnswer(
        await raw('nginx', ['GET /refused HTTP/1.1', 'Host: door', CALLER, `X-Portcullis-Refusal: ${refusal}`]),
      )
    },
    async close() {
      for (const client of clients.values()) client.close()
      await inner.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const CALLER = `X-Portcullis-Caller: ${SECRET}`

/** The lines of the question of a gateway, as its own configuration makes them. */
export function linesOf(profile: HttpProfile, request: AskedRequest): string[] {
  const { method = 'GET', target = '/', host = 'app.test', scheme = 'https', fields = [] } = request
  const names = DOOR_FIELDS[profile]
  const said = { method, target, host, scheme, client: '203.0.113.9' }
  const own = Object.entries(said).map(([name, value]) => `${Reflect.get(names, name)}: ${value}`)
  return [
    'GET /authorize HTTP/1.1',
    'Host: door',
    CALLER,
    ...own,
    ...fields.map(([name, value]) => `${name}: ${value}`),
  ]
}

/** `encode`: header fields as they came, else joined by name. */
export function checkOf(request: AskedRequest, encode: boolean): CheckRequest {
  const { method = 'GET', target = '/', host = 'app.test', scheme = 'https', fields = [], body } = request
  const all = [
    ...Object.entries({ ':method': method, ':path': target, ':authority': host, ':scheme': scheme }),
    ...fields,
  ]
  const joined: { [name: string]: string } = {}
  for (const [name, value] of all) {
    const lower = name.toLowerCase()
    joined[lower] = joined[lower] === undefined ? value : `${joined[lower]},${value}`
  }
  const headers: MessageInitShape<typeof CheckRequestSchema> = {
    attributes: {
      source: { address: { socketAddress: { address: '203.0.113.9' } } },
      request: {
        http: {
          method,
          path: target,
          host,
          scheme,
          protocol: 'HTTP/1.1',
          size: body === undefined ? 0n : BigInt(Buffer.byteLength(body)),
          ...(body !== undefined && { body }),
          ...(encode
            ? {
                headerMap: {
                  headers: all.map(([key, value]) => ({
                    key: key.toLowerCase(),
                    rawValue: Buffer.from(value, 'latin1'),
                  })),
                },
              }
            : { headers: joined }),
        },
      },
    },
  }
  return create(CheckRequestSchema, headers)
}

export function readCheckResponse({ status, httpResponse }: CheckResponse): DoorAnswer {
  const fieldsOf = (list: readonly { header?: { key: string; value: string } | undefined }[]): [string, string][] =>
    list.map(({ header }) => [header?.key ?? '', header?.value ?? ''])
  if (httpResponse.case === 'okResponse' && status?.code === 0) {
    const { headers, headersToRemove } = httpResponse.value
    return { status: 200, code: null, fields: fieldsOf(headers), removed: headersToRemove }
  }
  if (httpResponse.case !== 'deniedResponse' || status?.code === 0) throw new Error('neither allowed nor denied')
  const { status: http, headers, body } = httpResponse.value
  return { status: http?.code ?? 0, code: codeOf(body), fields: fieldsOf(headers), removed: [] }
}

const readAnswer = ({ status, fields, body }: RawAnswer): DoorAnswer => ({
  status,
  code: codeOf(body),
  fields: fields.map(([name, value]) => [name.toLowerCase(), value]),
  removed: [],
})

function codeOf(body: string): string | null {
  try {
    return JSON.parse(body).code ?? null
  } catch {
    return null
  }
}

/** The values of a field, in order. */
export const valuesOf = ({ fields }: DoorAnswer, name: string): string[] =>
  fields.filter(([key]) => key === name).map(([, value]) => value)
