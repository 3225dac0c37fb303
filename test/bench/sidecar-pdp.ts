/** The PDP beside the benchmarked sidecar: the engine over a memory store behind the real gRPC service. */
import { startRealPdp } from '../attacks/real-pdp.ts'

const { address } = await startRealPdp(['alice viewer invoice:1'], 'acme')
console.log(`port ${address.split(':')[1]}`)
