/** Everything of the sidecar that runs on bytes of somebody without a valid token, in parts. */
import { REQUEST_ROWS } from './request-rows.ts'

export const ROWS = [...REQUEST_ROWS]
