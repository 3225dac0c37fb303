/** A request for a page, and the person behind it. */
import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Frame } from '../html/frame.ts'

export type Visit = { readonly req: IncomingMessage; readonly res: ServerResponse; readonly frame: Frame }
