/** Connects protobuf-es service descriptors to grpc-js, for the PDP's server and the sidecar's client. */
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2'
import type { MethodDefinition } from '@grpc/grpc-js'

export type ServiceDefinitionOf<Methods extends GenServiceMethods> = {
  readonly [Name in keyof Methods]: MethodDefinition<
    MessageShape<Methods[Name]['input']>,
    MessageShape<Methods[Name]['output']>
  >
}

/** The grpc-js definition of a generated service; method names are those of the descriptor (`decide`). */
export function serviceDefinition<Methods extends GenServiceMethods>(
  service: GenService<Methods>,
): ServiceDefinitionOf<Methods> {
  const methods = service.methods.map((method) => {
    const request = codec(method.input)
    const response = codec(method.output)
    const definition: MethodDefinition<MessageShape<DescMessage>, MessageShape<DescMessage>> = {
      path: `/${service.typeName}/${method.name}`,
      requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
      responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
      requestSerialize: request.write,
      requestDeserialize: request.read,
      responseSerialize: response.write,
      responseDeserialize: response.read,
      originalName: method.localName,
    }
    return [method.localName, definition]
  })
  // The cast is safe: the descriptor lists exactly the methods of `Methods`, which types cannot see through fromEntries.
  return Object.fromEntries(methods) as ServiceDefinitionOf<Methods>
}

function codec<Desc extends DescMessage>(schema: Desc) {
  return {
    write(message: MessageShape<Desc>): Buffer {
      const bytes = toBinary(schema, message)
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    },
    read: (bytes: Buffer): MessageShape<Desc> => fromBinary(schema, bytes),
  }
}
