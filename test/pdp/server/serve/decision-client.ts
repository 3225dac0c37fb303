/** A gRPC client of the PDP that asks one call at a time. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { credentials, Metadata, makeClientConstructor } from '@grpc/grpc-js'
import { serviceDefinition } from '../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  DecisionService,
} from '../../../../proto/gen/portcullis/v1/decision_pb.ts'

const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')

export type DecisionClient = {
  /** Rejects with the ServiceError of the call. `metadata`: who calls; default: nobody says so. */
  decide(request: MessageInitShape<typeof DecideRequestSchema>, metadata?: Metadata): Promise<DecideResponse>
  close(): void
}

/** `ca`: whose certificate the server has, in PEM; without it the call is plain text. */
export function decisionClient(address: string, ca?: Buffer): DecisionClient {
  const client = new Client(address, ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca))
  const { path, requestSerialize, responseDeserialize } = definition.decide
  return {
    decide: (request, metadata = new Metadata()) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<DecideRequest, DecideResponse>(
          path,
          requestSerialize,
          responseDeserialize,
          create(DecideRequestSchema, request),
          metadata,
          (err, value) => (err === null && value !== undefined ? resolve(value) : reject(err)),
        )
      }),
    close: () => client.close(),
  }
}
