/** Server reflection: gRPC tools learn the services from the server. */
import { toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import type { Server } from '@grpc/grpc-js'
import { ReflectionService } from '@grpc/reflection'
import { DecisionService, file_portcullis_v1_decision } from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { file_portcullis_v1_routes } from '../../../../proto/gen/portcullis/v1/routes_pb.ts'

export function addReflection(server: Server): void {
  const files = [file_portcullis_v1_decision, ...file_portcullis_v1_decision.dependencies, file_portcullis_v1_routes]
  const fileDescriptorProtos = files.map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)))
  new ReflectionService({
    [DecisionService.typeName]: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos },
  }).addToServer(server)
}
