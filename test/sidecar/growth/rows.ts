/** Everything of the sidecar that runs on bytes of somebody without a valid token, in parts. */
import { FIELD_ROWS } from './field-rows.ts'
import { MCP_ROWS } from './mcp-rows.ts'
import { REQUEST_ROWS } from './request-rows.ts'
import { ROUTING_ROWS } from './routing-rows.ts'
import { TOKEN_ROWS } from './token-rows.ts'
import { VALUE_ROWS } from './value-rows.ts'
import { WIRE_ROWS } from './wire-rows.ts'

export const ROWS = [
  ...REQUEST_ROWS,
  ...ROUTING_ROWS,
  ...VALUE_ROWS,
  ...MCP_ROWS,
  ...FIELD_ROWS,
  ...TOKEN_ROWS,
  ...WIRE_ROWS,
]
