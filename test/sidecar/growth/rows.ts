/** Everything of the sidecar that runs on bytes of somebody without a valid token, in parts. */
import { REQUEST_ROWS } from './request-rows.ts'
import { ROUTING_ROWS } from './routing-rows.ts'

export const ROWS = [...REQUEST_ROWS, ...ROUTING_ROWS]
