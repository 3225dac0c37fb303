/** A server that logs a line of 1,000 characters for each request; /end logs an error and ends the process. */
import { createServer } from 'node:http'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { openLogOutput } from '../../../../pdp/shared/process/log-output.ts'

const output = openLogOutput('test')
const log = createLog({ service: 'test', level: 'info', destination: output })
const server = createServer((req, res) => {
  log.info({ event: 'request', at: req.url, filler: 'x'.repeat(1_000) })
  res.end(String(output.droppedCount()))
  if (req.url !== '/end') return
  log.error({ event: 'last_words' })
  res.once('close', () => process.exit(3))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stderr.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
