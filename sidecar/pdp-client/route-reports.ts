/** Reports this sidecar's routes to each connected PDP, and tries requests that the PDP sends. Decisions do not wait for it. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type Client, type ClientDuplexStream, type Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { serviceDefinition } from '../../pdp/shared/process/grpc/service.ts'
import {
  type ReportRequest,
  ReportRequestSchema,
  type ReportResponse,
  type RouteCount,
  RouteService,
  type RouteTable,
  type RouteTried,
} from '../../proto/gen/portcullis/v1/routes_pb.ts'

/** The source of the reports. Its functions never throw. */
export type RouteSource = {
  table(): Promise<RouteTable>
  /** How often each route was asked; empty before there is a table. */
  counts(): readonly RouteCount[]
  try(trial: ReportResponse): RouteTried
}
export type RouteReports = {
  /** Reports over this connection until the returned function is called. `metadata`: authenticates the sidecar. */
  open(client: Client, metadata: Metadata): () => void
  /** Must be called when the table has changed. */
  changed(): void
  close(): void
}
type Call = ClientDuplexStream<ReportRequest, ReportResponse>
type Report = { changed(): void; tick(): void }

const { path, requestSerialize, responseDeserialize } = serviceDefinition(RouteService).report
const COUNTS_MS = 5_000
const RETRY_MS = 10_000

export function createRouteReports(source: RouteSource): RouteReports {
  const open = new Set<Report>()
  const timer = setInterval(() => open.forEach((report) => void report.tick()), COUNTS_MS).unref()
  return {
    open(client, metadata) {
      const { report, stop } = reportOver(source, client, metadata)
      open.add(report)
      return () => {
        open.delete(report)
        stop()
      }
    },
    changed: () => open.forEach((report) => void report.changed()),
    close: () => clearInterval(timer),
  }
}

function reportOver(source: RouteSource, client: Client, metadata: Metadata): { report: Report; stop: () => void } {
  let call: Call | null = null
  let retry: NodeJS.Timeout | undefined
  let sent = new Map<number, number>()
  let tables = 0
  let isOver = false

  function start(): void {
    const started: Call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata)
    call = started
    started.on('data', (trial: ReportResponse) => void send({ tried: source.try(trial) }))
    started.on('error', (err: ServiceError) => ended(started, err.code))
    started.on('end', () => ended(started, status.OK))
    void sendTable()
  }

  /** The end of a call. A PDP of an earlier version, or without its console, does not accept reports. */
  function ended(which: Call, code: status): void {
    if (call !== which) return
    call = null
    if (!isOver && code !== status.UNIMPLEMENTED) retry = setTimeout(start, RETRY_MS).unref()
  }

  function send(message: MessageInitShape<typeof ReportRequestSchema>): void {
    call?.write(create(ReportRequestSchema, message))
  }

  async function sendTable(): Promise<void> {
    tables += 1
    const mine = tables
    const table = await source.table()
    // A later table is being made, so this one is not sent.
    if (tables !== mine) return
    sent = new Map()
    send({ table })
    sendCounts()
  }

  /** Sends the counts. A PDP that reads slowly gets later counts instead. */
  function sendCounts(): void {
    if (call === null || call.writableNeedDrain) return
    const counts = source.counts().filter(({ route, requests }) => requests !== (sent.get(route) ?? 0))
    for (const { route, requests } of counts) sent.set(route, requests)
    if (counts.length > 0) send({ counts: [...counts] })
  }

  start()
  return {
    report: { changed: () => void sendTable(), tick: sendCounts },
    stop() {
      isOver = true
      clearTimeout(retry)
      call?.cancel()
      call = null
    },
  }
}
