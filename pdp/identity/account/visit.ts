/** Who asks for a page, and what they may do on it. */
import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Frame } from '../html/frame.ts'

export type Visit = { readonly req: IncomingMessage; readonly res: ServerResponse; readonly frame: Frame }
