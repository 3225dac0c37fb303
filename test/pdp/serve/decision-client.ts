/** A gRPC client of the PDP that asks one call at a time. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { credentials, makeClientConstructor } from '@grpc/grpc-js'
import { serviceDefinition } from '../../../pdp/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  DecisionService,
} from '../../../proto/gen/portcullis/v1/decision_pb.ts'

const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')

export type DecisionClient = {
  /** Rejects with the ServiceError of the call. */
  decide(request: MessageInitShape<typeof DecideRequestSchema>): Promise<DecideResponse>
  close(): void
}

export function decisionClient(address: string): DecisionClient {
  const client = new Client(address, credentials.createInsecure())
  const { path, requestSerialize, responseDeserialize } = definition.decide
  return {
    decide: (request) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<DecideRequest, DecideResponse>(
          path,
          requestSerialize,
          responseDeserialize,
          create(DecideRequestSchema, request),
          (err, value) => (err === null && value !== undefined ? resolve(value) : reject(err)),
        )
      }),
    close: () => client.close(),
  }
}
